// Dispatcher: the book, its journal, and who waits for a change of it. What the service of a
// dispatcher answers is decided here.
//   Thread  the loop's.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/offload.h"
#include "core/disk/disk.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/task.h"
#include "rpc/loop/task_group.h"
#include "rpc/server/signal.h"
#include "service/dispatcher/job_book.h"
#include "service/dispatcher/journal.h"
#include "service/dispatcher/round_book.h"

namespace cairn::service {

// A number that is not 0, from the system.
std::uint64_t random_number();

using Bytes = std::shared_ptr<const std::vector<std::byte>>;

// A larger description is one with its data inside: that belongs into files.
inline constexpr std::size_t kDescriptionBytesMax = 32u << 20;
inline constexpr std::size_t kRunningMax = 4096;  // tasks that a data worker may name

struct DispatcherOptions {
  std::string journal;               // a folder; empty: nothing is kept
  std::vector<std::string> workers;  // the list by which FILE, DATA, FILE_OR_DATA and HINT deal
  // A data worker that has been silent for so long is lost: its tasks are dealt again.
  Duration silence = std::chrono::seconds(5);
  // A job that no consumer asks about for so long is forgotten; one without a name, whose consumer
  // has left, sooner.
  Duration job_silence = std::chrono::minutes(10);
  Duration left_silence = std::chrono::minutes(2);
  // The number of the first job, if there is no journal to go on from; 0: drawn at random, so that
  // a job of a dispatcher that has forgotten it is not taken for another one.
  std::uint64_t first_job = 0;
  LogSink log = log_line;
};

struct Watched {
  std::uint64_t change = 0;
  std::vector<DataWorkerPlace> workers;
  bool finished = false;
};

struct Described {
  ProcessingMode mode = ProcessingMode::kOff;
  Bytes description;
  std::string name;
  std::uint32_t group = 0;  // consumers that read it in rounds
};

struct NextTask {
  std::optional<DealtTask> task;
  bool finished = false;  // the job is done, and there never is another one
};

// Coroutines take a shared_ptr to it: calls may outlive the server by a turn of the loop.
class Dispatcher : public std::enable_shared_from_this<Dispatcher> {
 public:
  // Reads the journal. Errors  those of Journal, and DataLoss.
  Dispatcher(rpc::Reactor& reactor, Offload& offload, Disk& disk, DispatcherOptions options);

  void begin() { tasks_.spawn("looking after data workers and jobs", look_after()); }
  void end() { tasks_.cancel_all(); }
  // Errors  InvalidArgument: the description, or one that the mode does not fit; and JobBook::open.
  rpc::Task<std::uint64_t> open_job(std::string key, ProcessingMode mode, Bytes description,
                                    std::uint32_t group);
  rpc::Task<Watched> watch(std::uint64_t job, std::uint64_t consumer, std::uint64_t handed,
                           std::uint64_t seen);
  // Elements of the tasks that are done, and those handed out.
  rpc::Task<std::pair<std::uint64_t, std::uint64_t>> leave(std::uint64_t job,
                                                           std::uint64_t consumer,
                                                           std::uint64_t handed);
  // At once, or, if it may wait, when the order goes on or within a second.
  //   Errors  NotFound: the job. FailedPrecondition: it is not read in rounds; and RoundBook's.
  rpc::Task<RoundOrder> rounds(std::uint64_t job, RoundReport report, bool wait);
  std::vector<TaskRef> report(const DataWorkerPlace& worker, const std::vector<TaskRef>& running);
  Described describe(std::uint64_t job) const;
  rpc::Task<NextTask> next_task(std::uint64_t job, ProcessIncarnation worker,
                                std::vector<std::uint64_t> running);
  rpc::Task<void> finish(std::uint64_t job, std::uint64_t task, std::uint64_t elements);
  const JobBook& book() const { return book_; }

 private:
  void load();
  rpc::Task<void> look_after();
  void look();
  kj::Promise<void> change_before(Duration until, rpc::Signal& of);
  std::set<std::uint64_t> used_datasets() const;

  rpc::Reactor& reactor_;
  Offload& offload_;
  const DispatcherOptions options_;
  JobBook book_;
  std::map<std::uint64_t, Bytes> datasets_;  // by fingerprint
  std::multiset<std::uint64_t> opening_;     // datasets of jobs that are not in the book yet
  Journal journal_;
  std::map<std::uint64_t, RoundBook> rounds_;  // by job
  rpc::Signal changed_, rounds_changed_;
  Duration looked_{0};
  rpc::TaskGroup tasks_;
};

}  // namespace cairn::service
