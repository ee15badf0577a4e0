// DataServiceIterator: reads a dataset through the data service, from all of its workers at once.
//
//   DataServiceIterator it(*reactor, *network, dataset,
//                          {.dispatcher = Address::parse("host:5050"), .job_name = "train",
//                           .mode = ProcessingMode::kDynamic});
//   while (auto element = co_await it.next()) ...
//
// Consumers that name the same job share its elements: each goes to one of them. A job without a
// name is this iterator's alone.
//   Once  each element of a job is handed out exactly once unless a process of the service, or a
//         connection to one, is lost. After a loss, DYNAMIC still hands out each at least once, and
//         statistics() counts the repeats. The modes that deal by the list of workers do so too,
//         but only once the lost worker is back at its address; the job waits for it until
//         next_deadline. In mode OFF, what a lost worker had not delivered is lost.
//   Rounds  consumers with num_consumers read in rounds. A round is as many consecutive elements of
//         one data worker as there are consumers, and each consumer is given the one of its place.
//         Data workers take turns; one without a complete round is passed over. A round is handed
//         out when all consumers have it here. So they are given the same rounds in the same order
//         and end behind the same one, whatever is lost. Elements that a task has left and that
//         fill no round are dropped. Consumers of a group begin together: one that is started again
//         ends the others with an error.
//   Order  of one worker's elements, that of its pipeline; of several workers', as they come.
//   Thread the reactor's.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/tensor/element.h"
#include "data/dataset/dataset.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/task.h"
#include "rpc/net/hello.h"
#include "rpc/net/network.h"
#include "service/base/compression.h"
#include "service/base/link.h"
#include "service/base/processing_mode.h"

namespace cairn::service {

struct DataServiceOptions {
  rpc::Address dispatcher;
  std::string job_name;  // empty: a job of its own
  ProcessingMode mode = ProcessingMode::kOff;
  Compression compression = Compression::kAuto;  // of elements on their way
  std::string cluster = "cairn";
  std::string token;
  rpc::Role role = rpc::Role::kTool;  // who reads: a worker, the chief, a tool
  std::uint32_t task = 0;
  std::size_t buffer_elements = 16;  // that are here and not handed out; at least one per worker
  // How long the dispatcher, or every data worker, may be away.
  Duration patience = std::chrono::seconds(60);
  // How long next() waits in all: for a slow pipeline, or for other consumers of the job, which
  // have to take what they were sent before it is known that nothing of it comes again.
  Duration next_deadline = std::chrono::minutes(10);
  // If next() is not called for so long, the consumer gives back what it has ahead, since other
  // consumers may wait for it. The next call reads again.
  Duration idle = std::chrono::seconds(10);
  std::uint64_t identity = 0;  // of this consumer; 0: drawn at random
  // Which job without a name this is: an iterator with the same number reads on in it. 0: a job of
  // this iterator's own.
  std::uint64_t own_job = 0;
  // Coordinated reads: one of so many consumers of the named job that read it in rounds, and its
  // place among them; 0: it reads for itself.
  std::uint32_t num_consumers = 0, consumer_index = 0;
};

struct DataServiceStatistics {
  std::uint64_t handed = 0;  // by this iterator
  // Counts for the whole job, as known when it ended: elements, and those handed to any consumer.
  std::uint64_t job_elements = 0, job_handed = 0;
  // Elements that consumers were handed again, after a loss.
  std::uint64_t duplicates() const {
    return job_handed > job_elements ? job_handed - job_elements : 0;
  }
};

class DataServiceIterator {
 public:
  // Begins to read at once. `dataset` is a description: only dispatcher and data workers need to
  // see its files.
  DataServiceIterator(rpc::Reactor& reactor, rpc::Network& network, const Dataset& dataset,
                      DataServiceOptions options);
  ~DataServiceIterator();  // drops what was not handed out: the job gives it to other consumers

  // The next element; empty at the end of the job, however often it is asked. One call at a time.
  //   Errors  FailedPrecondition: the job exists with another dataset, mode or num_consumers, or
  //           the group has started over. InvalidArgument: the mode does not fit the dataset.
  //           NotFound: the mode needs a list of workers, and there is none. Unavailable: the
  //           dispatcher, all data workers, or one that the dispatcher hears of have been away for
  //           `patience`; or a consumer of the group has, which is named. DeadlineExceeded: after
  //           next_deadline. Else what the pipeline raised, on the data worker that is named.
  //           After an error the iterator has ended with it.
  rpc::Task<std::optional<Element>> next();
  // The next element if it is here already, else none: call next() then, which waits for it, and
  // reports the end and errors. Thread  any, one at a time with next().
  std::optional<Element> take();
  // Acknowledges the elements handed out so far to the data workers, for at most a second. Call it
  // before dropping an iterator early, or they may be handed out again. At the end next() does it.
  rpc::Task<void> settle();
  const ElementSpec& element_spec() const { return spec_; }
  DataServiceStatistics statistics() const;

 private:
  struct Source;
  struct Rounds;
  struct Core;
  struct Asking;
  const ElementSpec spec_;
  DataServiceStatistics statistics_;
  std::unique_ptr<Core> core_;
};

}  // namespace cairn::service
