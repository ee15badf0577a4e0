// WorkerJob: one job at one data worker. It reads the tasks that it is dealt, element by element,
// and keeps each element until a consumer has acknowledged it.
//
// An element is ready, or sent to a connection. When a connection ends, the elements sent to it are
// ready again, in their old places. A task is done when it was read to its end and all of its
// elements are acknowledged.
//
// Elements come in rounds of as many as there are consumers in the job's group, of one task each;
// an element is for the consumer of its place in the round. Elements at the end of a task that fill
// no round are dropped. Without a group a round is one element, for any consumer.
//   Thread  the loop's; the pipeline runs on an Offload.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/offload.h"
#include "core/tensor/element.h"
#include "data/dataset/dataset_iterator.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/task_group.h"
#include "rpc/server/signal.h"
#include "service/dispatcher/dispatcher.h"

namespace cairn::service {

inline constexpr std::uint32_t kElementsAtOnceMax = 1024;  // in one answer

struct WorkerJobOptions {
  // Elements that are ready, or sent and not acknowledged. One element is kept whatever its size.
  std::size_t elements_max = 64;
  std::size_t bytes_max = std::size_t{64} << 20;
  std::size_t tasks_max = 32;  // that are not done
  // Reading stops when no consumer has called for so long.
  Duration unasked = std::chrono::seconds(30);
};

// The process around a job, as far as the job needs it.
struct WorkerJobHost {
  rpc::Reactor& reactor;
  Offload& offload;
  std::size_t lane = 0;
  // The number of the job's first element. No two elements of a process may share a number, since
  // acknowledgements name it and may come late. One less is a multiple of the job's consumers.
  std::uint64_t first_number = 1;
  // Calls to the dispatcher. They return only when it has answered: the host repeats them.
  std::function<rpc::Task<NextTask>(std::vector<std::uint64_t> running)> next_task;
  std::function<rpc::Task<void>(std::uint64_t task, std::uint64_t elements)> finish;
};

struct SentElement {
  std::uint64_t number = 0;
  std::shared_ptr<const Element> columns;
};

struct Sent {
  std::vector<SentElement> elements;
  std::string error;  // the job's pipeline has failed: rpc::error_text()
};

struct WorkerJobCounts {
  std::size_t tasks = 0, ready = 0, sent = 0, bytes = 0;
  std::uint64_t produced = 0, acknowledged = 0, sent_again = 0;
};

class WorkerJob : public std::enable_shared_from_this<WorkerJob> {
 public:
  WorkerJob(WorkerJobHost host, const Described& job, WorkerJobOptions options);
  ~WorkerJob();

  void begin();  // reads ahead of the first call
  // At most `most` elements and 4 MB, or one element, for a consumer's connection; none after a
  // second. `index`: its place in the group.
  //   Errors  InvalidArgument: there is no such place.
  rpc::Task<Sent> get(std::uint64_t connection, std::uint64_t consumer, std::uint32_t index,
                      std::size_t most);
  void acknowledge(const std::vector<std::uint64_t>& numbers);
  void connection_ended(std::uint64_t connection);
  // The dispatcher has dealt the task to another worker: what is left of it is dropped.
  void drop(std::uint64_t task);
  std::vector<std::uint64_t> running() const;  // tasks that are not done
  WorkerJobCounts counts() const;
  Duration asked() const { return asked_; }  // when a consumer called last
  std::size_t lane() const { return host_.lane; }

 private:
  struct Held {
    std::uint64_t task = 0;
    std::shared_ptr<const Element> columns;
    std::size_t bytes = 0;
    std::uint64_t connection = 0;  // that it was sent to; 0: it is ready
  };
  struct Reading {
    std::uint64_t produced = 0;
    std::size_t kept = 0;  // elements that are not acknowledged
    bool complete = false;
    bool finishing = false;
  };
  struct Pipeline;
  rpc::Task<void> produce();
  rpc::Task<void> begin_task();
  rpc::Task<void> read_some();
  rpc::Task<void> tell_finished(std::uint64_t task, std::uint64_t elements);
  kj::Promise<void> change_before(Duration until);
  bool room() const;
  std::size_t place_of(std::uint64_t number) const { return (number - 1) % ready_.size(); }
  std::size_t ready_count() const;
  void keep(std::uint64_t task, Element element);
  void keep_rounds(std::uint64_t task, std::vector<Element> elements);
  void seat(std::uint32_t index, std::uint64_t consumer);
  void forget(std::map<std::uint64_t, Held>::iterator held);
  void settle(std::uint64_t task);
  void give_up_task();

  WorkerJobHost host_;
  const ProcessingMode mode_;
  const std::string name_;
  const WorkerJobOptions options_;
  std::shared_ptr<Pipeline> pipeline_;
  std::map<std::uint64_t, Held> held_;          // by number
  std::vector<std::set<std::uint64_t>> ready_;  // by place in the round
  std::vector<Element> round_;                  // that is not complete
  std::map<std::uint64_t, Reading> tasks_held_;
  std::map<std::uint64_t, std::uint64_t> connection_of_;  // by consumer
  std::vector<std::uint64_t> seated_;                     // consumers, by place
  std::uint64_t next_number_;
  WorkerJobCounts counts_;
  Duration asked_{0};
  std::optional<std::string> error_;
  Duration failed_at_{0};
  rpc::Signal changed_;
  rpc::TaskGroup tasks_;  // last
};

}  // namespace cairn::service
