#include "tools/cli/train_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/log.h"
#include "tools/cli/job_flags.h"
#include "tools/job/run/interrupt.h"
#include "tools/job/run/progress_line.h"
#include "tools/job/train/train_in_process.h"
#include "tools/job/train/train_on_servers.h"
#include "tools/job/train/train_on_workers.h"

namespace cairn::tools {
namespace {

// On a terminal the log's lines stand above the live one.
class LogAbove {
 public:
  explicit LogAbove(ProgressLine& line) : on_(::isatty(STDOUT_FILENO) == 1) {
    if (on_) log_to([&line](LogLevel, const std::string& text) { line.say(text); });
  }
  ~LogAbove() {
    if (on_) log_to(LogSink{});
  }
  LogAbove(const LogAbove&) = delete;
  LogAbove& operator=(const LogAbove&) = delete;

 private:
  bool on_;
};

// The exit status of a run that has ended.
int status_of(const TrainedJob& trained) {
  if (trained.interrupted != 0 && !trained.stopped) return 128 + trained.interrupted;
  return trained.failure.empty() ? 0 : 1;
}

// Runs `work`, whose exit status it returns; of an interrupted start, that of the signal.
int in_order(const std::function<int()>& work) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader of our output may go away; the run goes on
  std::signal(SIGUSR1, SIG_IGN);  // until the coordinator is there to answer
  try {
    return work();
  } catch (const CancelledError& error) {
    if (Interrupts::signal() == 0) throw;
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.what());
    return 128 + Interrupts::signal();
  }
}

// Runs a job with the terminal as its output. Until its data has been read, a signal ends the
// process at once.
template <typename Train>
int on_terminal(Train train) {
  std::optional<Interrupts> interrupts;
  ProgressLine line;
  return status_of(
      train(line, RunHost{line, Interrupts::signal(), "", [&] { interrupts.emplace(); }}));
}

int train_here(const TrainRequest& request) {
  return in_order([&] {
    const Job job = job_to_train(request);
    if (job.strategy.kind == "multi_worker_mirrored") return supervise_workers(request, job);
    return on_terminal([&](ProgressLine&, const RunHost& host) {
      if (!job.strategy.on_workers()) return train_in_process(request, host);
      return train_on_local_cluster(request, host);
    });
  });
}

}  // namespace

int run_coordinator(const TrainRequest& request) {
  return in_order([&] {
    const Job job = job_of(request);
    if (!job.strategy.on_workers())
      throw InvalidArgumentError(str("strategy.kind is \"", job.strategy.kind,
                                     "\", which needs no cluster: run the job by `cairn train`"));
    if (job.strategy.kind == "multi_worker_mirrored" && !request.journal.folder.empty())
      throw InvalidArgumentError(
          "--journal: strategy.kind is \"multi_worker_mirrored\", whose workers have no "
          "coordinator: "
          "they go on from a checkpoint, by --resume");
    return on_terminal([&](ProgressLine& line, const RunHost& host) {
      if (job.strategy.kind == "multi_worker_mirrored") return train_as_worker(request, host);
      const LogAbove log(line);
      return train_on_given_cluster(request, host);
    });
  });
}

void add_train_command(CLI::App& app, int& status) {
  auto request = std::make_shared<TrainRequest>();
  CLI::App* train = app.add_subcommand("train", "Run a job file on this machine");
  add_job_flags(*train, *request);
  add_cluster_flags(*train, *request);
  train->callback([request, &status] { status = train_here(*request); });
}

}  // namespace cairn::tools
