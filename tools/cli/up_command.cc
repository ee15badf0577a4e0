#include "tools/cli/up_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "tools/launch/local_cluster.h"
#include "tools/launch/role_group.h"
#include "tools/launch/typed_signals.h"
#include "tools/launch/worker_processes.h"

namespace cairn::tools {
namespace {

std::string auto_as_0(const std::string& text) { return text == "auto" ? "0" : text; }

struct UpOptions {
  LocalClusterOptions cluster;
  std::optional<int> ps, workers;  // as given
  int restarts_max = WorkerProcessesOptions{}.restarts_max;
  std::vector<std::string> kills;
  std::vector<std::string> program;
};

// A program that ends so soon, by itself, would do so again.
constexpr Duration kYoung = std::chrono::seconds(10);

void say(const std::string& line) { std::fprintf(stderr, "cairn up: %s\n", line.c_str()); }

// Runs until the program ends, a role is given up or, without a program, a signal comes. Signals
// are blocked first, before the cluster has threads, so the order of the members matters.
class Up {
 public:
  explicit Up(const UpOptions& options)
      : given_up_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        restarts_({.role = "program", .restarts_max = options.restarts_max}, 1, kYoung),
        command_(options.program),
        cluster_(options.cluster, [this](const RoleEvent& event) { on_event(event); }) {}
  ~Up() { ::close(given_up_); }

  int run() {
    cluster_.start();
    say(str("cluster ", cluster_.cluster_id(), " runs; its folder is ", cluster_.dir()));
    if (command_.empty())
      tell_how_to_join();
    else
      start_program();
    int status = wait();
    end_program();
    cluster_.stop();
    return status;
  }

 private:
  // On the supervisor's thread; wait() is woken by the eventfd.
  void on_event(const RoleEvent& event) {
    if (event.kind == RoleEvent::Kind::kStarted && event.restarts == 0) return;
    say(event.message);
    if (event.kind != RoleEvent::Kind::kGivenUp) return;
    failed_ = true;
    ::eventfd_write(given_up_, 1);
  }

  // The program is the chief: it gets TF_CONFIG with its own place in it, and its process number
  // stands in cluster.json. It shares our process group, so that it can read from the terminal. By
  // its journal it goes on, started again, where it stood.
  void start_program() {
    std::vector<std::string> environment = cluster_.environment("chief", 0);
    environment.push_back("CAIRN_JOURNAL=" + cluster_.dir() + "/journal");
    environment.push_back(str("CAIRN_RESTARTS=", restarts_.restarts()));
    restarts_.started(system_clock().now());
    program_.emplace(Command{.arguments = command_,
                             .environment = std::move(environment),
                             .output_file = {},
                             .group = Command::Group::kShared});
    cluster_.set_chief(program_->pid());
  }

  // Starts a program again that has died; else the status for our own end.
  std::optional<int> after(ExitStatus ended) {
    restarts_.ended(0, ended, system_clock().now());
    const RoleGroup::Outcome outcome = restarts_.outcome();
    if (failed_ || !outcome.again) {
      if (!outcome.text.empty() && restarts_.restarts() > 0)
        say(str("the program ended with ", ended.str(), ", and was started again ",
                restarts_.restarts(), " times before: mend the cause, and start it again"));
      return failed_ ? 1 : ended.shell_code();
    }
    say(str("the program ended with ", ended.str(), ": it is started again, for time ",
            restarts_.restarts()));
    start_program();
    return std::nullopt;
  }

  // If a server was given up, the program still runs: it gets as long as the servers do to end by
  // itself.
  void end_program() {
    if (!program_) return;
    program_->send(SIGTERM);
    pollfd ended{.fd = program_->pidfd(), .events = POLLIN};
    while (::poll(&ended, 1, 10'000) < 0 && errno == EINTR) {
    }
    program_.reset();
  }

  // On standard output, and nothing else goes there, so that a shell can evaluate it.
  void tell_how_to_join() {
    say("no program was given; start one in another shell with these, and end the cluster with "
        "Ctrl-C:");
    for (const auto& assignment : cluster_.environment("chief", 0)) {
      auto equals = assignment.find('=') + 1;
      std::printf("export %s'%s'\n", assignment.substr(0, equals).c_str(),
                  assignment.substr(equals).c_str());
    }
    std::fflush(stdout);
  }

  // The program's exit status is ours, as a shell would have it.
  int wait() {
    while (true) {
      pollfd waits[] = {{.fd = signals_.fd(), .events = POLLIN},
                        {.fd = given_up_, .events = POLLIN},
                        {.fd = program_ ? program_->pidfd() : -1, .events = POLLIN}};
      ::poll(waits, 3, -1);
      if (program_) {
        if (auto ended = program_->poll())
          if (const std::optional<int> status = after(*ended)) return *status;
      }
      if (failed_) return 1;  // Up::run ends the program
      while (auto signal = signals_.next()) {
        if (!program_) return 0;
        pass_on(*signal);
      }
    }
  }

  // A signal from the terminal reaches the program by itself, since it shares our group. If kill(1)
  // sent us the signal, we pass it on. The third request kills.
  void pass_on(const signalfd_siginfo& signal) {
    bool typed = signal.ssi_code == SI_KERNEL;
    restarts_.asked_to_end(system_clock().now());
    if (++requests_ >= 3)
      program_->send(SIGKILL);
    else if (!typed)
      program_->send(static_cast<int>(signal.ssi_signo));
  }

  TypedSignals signals_;
  int given_up_;
  std::atomic<bool> failed_{false};
  int requests_ = 0;
  RoleGroup restarts_;
  const std::vector<std::string> command_;
  LocalCluster cluster_;
  std::optional<ChildProcess> program_;
};

// --ps 0, or --workers without --ps: a group of workers, each of which runs the program.
bool is_group(const UpOptions& options) {
  return options.ps ? *options.ps == 0 : options.workers.has_value();
}

int up_group(const UpOptions& options) {
  if (options.program.empty())
    throw InvalidArgumentError(
        "without ps there is a group of workers that all run one program: give it behind --; or "
        "give --ps, to have servers for a program of your own");
  const bool device = options.cluster.device != LocalClusterOptions().device;
  const bool limit = options.cluster.memory_limit != LocalClusterOptions().memory_limit;
  if (options.cluster.shards > 0 || options.cluster.lanes > 0 || device || limit ||
      options.cluster.deterministic)
    throw InvalidArgumentError(
        str(options.cluster.shards > 0  ? "--shards"
            : options.cluster.lanes > 0 ? "--lanes"
            : device                    ? "--device"
            : limit                     ? "--memory-limit"
                                        : "--deterministic",
            " is of a cluster with ps, and here all processes are workers that run the program: "
            "give --ps, or leave it out"));
  WorkerProcessesOptions group;
  group.workers = options.workers.value_or(group.workers);
  group.program = options.program;
  group.transport = options.cluster.transport;
  group.dir = options.cluster.dir;
  group.token = options.cluster.token;
  group.restarts_max = options.restarts_max;
  group.data_workers = options.cluster.data_workers;
  group.programs = options.cluster.programs;
  for (const auto& text : options.kills) group.kills.push_back(parse_kill(text));
  return WorkerProcesses(std::move(group)).run();
}

// Kills at a share of the run are refused here: an arbitrary program does not report its progress.
int up(UpOptions options) {
  if (is_group(options)) return up_group(options);
  options.cluster.ps = options.ps.value_or(options.cluster.ps);
  options.cluster.workers = options.workers.value_or(options.cluster.workers);
  for (const auto& text : options.kills) {
    Kill kill = parse_kill(text);
    if (kill.progress)
      throw InvalidArgumentError(
          str("--kill ", text, ": only `cairn train` knows how much of its run is done; ",
              "`cairn up` takes a time, as ", kill.role, ":", kill.index, "@12s"));
    options.cluster.supervisor.kills.push_back(std::move(kill));
  }
  return Up(options).run();
}

}  // namespace

void add_up_command(CLI::App& app, int& status) {
  auto options = std::make_shared<UpOptions>();
  CLI::App* command = app.add_subcommand("up",
                                         "Run ps and workers on this machine, a data service too, "
                                         "and a program on them; with --workers "
                                         "and no --ps, the program as every worker of a group");
  LocalClusterOptions& cluster = options->cluster;
  command->add_option("--ps", options->ps,
                      "How many ps processes (2; none if only --workers is given)");
  command->add_option("--workers", options->workers, "How many worker processes (2)");
  command
      ->add_option("--data-workers", cluster.data_workers,
                   "How many workers of a data service, beside a dispatcher; the program finds it "
                   "in CAIRN_DATA_SERVICE")
      ->capture_default_str();
  command
      ->add_option(
          "--restarts", options->restarts_max,
          "How often a program that died is started again, to go on by its journal; without "
          "ps, the group after a worker's death")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--shards", cluster.shards,
                   "Shards (threads) of each ps; auto (default): its share of the processors")
      ->transform(auto_as_0);
  command
      ->add_option(
          "--lanes", cluster.lanes,
          "Closures each worker computes at once; auto (default): its share of the processors")
      ->transform(auto_as_0);
  command
      ->add_option("--memory-limit", cluster.memory_limit,
                   "Memory of each ps, as \"8 GB\" or 50%: rows of hashed variables that do not "
                   "fit lie on a disk")
      ->capture_default_str();
  command->add_option("--row-log", cluster.row_log,
                      "The folder for them, on a local disk (default: row-log in the run's)");
  command
      ->add_option("--device", cluster.device,
                   "What workers compute on: auto (the GPUs, or the CPU where there is none), cpu, "
                   "gpu, or one GPU, as gpu:0")
      ->capture_default_str();
  command->add_flag("--deterministic", cluster.deterministic,
                    "On GPUs: what workers compute repeats bit for bit, at the price of slower "
                    "products");
  command->add_option("--transport", cluster.transport, "auto, tcp or unix")->capture_default_str();
  command->add_option("--dir", cluster.dir,
                      "Folder of this run: logs, cluster.json (default: a new one under runs/)");
  command->add_option("--token", cluster.token, "The cluster's secret (default: a random one)");
  command->add_option(
      "--programs", cluster.programs,
      "Folder of cairn-ps, cairn-worker and cairn-data (default: beside this program)");
  command
      ->add_option("--kill", options->kills,
                   "SIGKILL a role: ps:0@12s, data_worker:0@5s. May be repeated")
      ->allow_extra_args(false);
  command->add_option(
      "program", options->program,
      "-- PROGRAM ARGUMENTS...: run with TF_CONFIG as the chief, or, without ps, as "
      "each worker (worker 0 is the chief)");
  command->callback([options, &status] { status = up(*options); });
}

}  // namespace cairn::tools
