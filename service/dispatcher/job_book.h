// JobBook: what a dispatcher knows, without network, disk and clock: workers, jobs, and which tasks
// of a job are dealt to whom.
//
// Tasks of a job are numbered from 0. Below `next` a task is dealt, or waits to be dealt `again`,
// or is done: what is in neither of the two is done, so that the book of a long job stays small.
//   Thread  one at a time.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/incarnation.h"
#include "core/base/json.h"
#include "service/dispatcher/splits.h"

namespace cairn::service {

struct TaskRef {
  std::uint64_t job = 0, number = 0;
  auto operator<=>(const TaskRef&) const = default;
};

struct DataWorkerPlace {
  std::string address;
  ProcessIncarnation incarnation;
  auto operator<=>(const DataWorkerPlace&) const = default;
};

struct ConsumerRecord {
  std::uint64_t handed = 0;
  bool left = false;
};

struct DataJob {
  std::uint64_t id = 0;
  std::string key;  // its name, or "#" and a number for one without
  ProcessingMode mode = ProcessingMode::kOff;
  std::uint64_t dataset = 0;  // its fingerprint
  SplitPlan plan;             // kDynamic
  std::uint32_t group = 0;    // consumers that read it in rounds; 0: each reads for itself
  std::uint64_t next = 0, done = 0;
  std::uint64_t elements = 0;  // of tasks that are done
  std::map<std::uint64_t, DataWorkerPlace> dealt;
  std::set<std::uint64_t> again;
  std::map<std::uint64_t, ConsumerRecord> consumers;
  TimePoint seen;  // a consumer was, last

  bool finished() const;
  bool named() const { return !key.starts_with('#'); }
  std::uint64_t handed() const;  // to all consumers
  std::string name() const;      // for messages
};

inline constexpr unsigned kWorkersMax = 4096;  // data workers of one dispatcher

struct JobRequest {
  std::string key;
  ProcessingMode mode = ProcessingMode::kOff;
  std::uint64_t dataset = 0;
  SplitPlan plan;
  std::uint32_t group = 0;
};

struct DealtTask {
  std::uint64_t number = 0;
  Piece piece;
};

class JobBook {
 public:
  // `listed`: the addresses by which modes FILE to HINT deal; may be empty. `first_job`: the number
  // of the first job of a book that begins empty.
  explicit JobBook(std::vector<std::string> listed, std::uint64_t first_job = 1)
      : listed_(std::move(listed)), next_job_(first_job) {}

  // ---- workers ----
  // The worker lives, and holds `running`. Gives those of them that are not its own any more.
  //   Errors  ResourceExhausted: too many workers.
  std::vector<TaskRef> report(const DataWorkerPlace& worker, const std::vector<TaskRef>& running,
                              TimePoint now);
  // Loses the workers that have been silent since `before`, and tells which.
  std::vector<DataWorkerPlace> lose_silent(TimePoint before);
  std::vector<DataWorkerPlace> workers() const;

  // ---- jobs ----
  // The job of the request's key, made if it is not there.
  //   Errors  FailedPrecondition: it is there with another dataset, mode or number of consumers.
  //           NotFound: a mode that deals by the list of workers, which is empty.
  //           ResourceExhausted: too many jobs.
  const DataJob& open(const JobRequest& request, TimePoint now);
  const DataJob& job(std::uint64_t id) const;  // Errors  NotFound: there is no such job (any more)
  // A task for the worker; empty: none for now, or never (finished()). What was dealt to it and is
  // not among `running` is dealt to it again.
  //   Errors  NotFound: the job. FailedPrecondition: the worker has not reported.
  std::optional<DealtTask> next_task(std::uint64_t job, ProcessIncarnation worker,
                                     const std::vector<std::uint64_t>& running);
  // Marks the task as done, by whichever worker. Returns false if it was done before.
  bool finish(std::uint64_t job, std::uint64_t task, std::uint64_t elements);
  // Errors  NotFound: the job. ResourceExhausted: too many consumers.
  void heard(std::uint64_t job, std::uint64_t consumer, ConsumerRecord record, TimePoint now);
  // Forgets jobs that no consumer has asked about since `before`; those without a name, which
  // nobody can join again, since `left_before`, if their consumers have left.
  std::vector<DataJob> forget(TimePoint before, TimePoint left_before);
  const std::map<std::uint64_t, DataJob>& jobs() const { return jobs_; }

  // Counts what consumers watch: a worker that came or went, a job that has finished.
  std::uint64_t changes() const { return changes_; }

  // ---- the journal ----
  Json json() const;
  // Fills an empty book. Workers that hold tasks count as heard of `now`.
  //   Errors  DataLoss: the journal is not of this form; names the field.
  void load(const Json& journal, TimePoint now);

 private:
  struct Seat {
    ProcessIncarnation incarnation;
    TimePoint heard;
  };
  DataJob& at(std::uint64_t id);
  void lose(const DataWorkerPlace& worker);
  void welcome(const DataWorkerPlace& worker);
  std::optional<DataWorkerPlace> place_of(ProcessIncarnation worker) const;
  bool adopt(const DataWorkerPlace& worker, const TaskRef& task);
  std::optional<std::uint64_t> choose(const DataJob& job, const DataWorkerPlace& worker) const;
  DealtTask dealt_task(const DataJob& job, std::uint64_t number) const;

  const std::vector<std::string> listed_;
  std::map<std::string, Seat> seats_;  // by address
  std::map<std::uint64_t, DataJob> jobs_;
  std::map<std::string, std::uint64_t> keys_;
  std::uint64_t next_job_;
  std::uint64_t changes_ = 1;
};

}  // namespace cairn::service
