// The inside of a DataServiceIterator: its job, the data workers that it reads from, and the
// elements that it has ahead. For this room's .cc files.
#pragma once
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rpc/loop/task_group.h"
#include "rpc/server/signal.h"
#include "service/base/link.h"
#include "service/consumer/consumer_calls.h"
#include "service/consumer/data_service_iterator.h"
#include "service/consumer/element_buffer.h"
#include "service/dispatcher/dispatcher.h"
#include "service/dispatcher/round_book.h"

namespace cairn::service {

// One data worker, as this consumer reads from it.
struct DataServiceIterator::Source {
  DataWorkerPlace place;
  std::unique_ptr<Link> link;
  std::string trouble;  // why it cannot be read at the moment
  rpc::TaskGroup tasks{[](const std::string&, const ErrorParts&) {}};  // last
};

// The rounds that a consumer of a group has here, and their order as far as it knows.
struct DataServiceIterator::Rounds {
  std::uint64_t group = 0, sequence = 0;
  std::uint64_t base = 0;                         // the place in the order of the first of `known`
  std::deque<Round> known;                        // what others may not know yet
  std::map<Round, GotElement> here;               // that are not in the order
  std::map<DataWorkerPlace, std::uint64_t> last;  // in the order, of each worker
  std::set<DataWorkerPlace> gone;              // of which it has rounds that nobody is to count on
  std::vector<std::uint32_t> missing, behind;  // consumers
  Duration complete{0};                        // when no consumer was missing, last
  bool closing = false;                        // no more rounds are wanted
  bool untold = false;                         // `here` or `gone` has changed
  rpc::Signal came;                            // something is untold, or the group is known

  std::size_t here_of(const DataWorkerPlace& worker) const;
  void tell() {
    untold = true;
    came.notify_all();
  }
};

struct DataServiceIterator::Core {
  Core(rpc::Reactor& reactor, rpc::Network& network, const Dataset& dataset,
       const ElementSpec& spec, DataServiceOptions given);
  ~Core() { tasks.cancel_all(); }

  rpc::Hello hello() const;
  rpc::Task<void> follow();
  rpc::Task<std::uint64_t> open_job();
  void meet(const std::vector<DataWorkerPlace>& workers);
  void drop(const DataWorkerPlace& worker);
  void rest_if_idle();
  // From here to waits_text(): for a group of consumers, in iterator_rounds.cc.
  void put(const DataWorkerPlace& worker, GotElement element);
  void begin_rounds();
  rpc::Task<void> follow_rounds(bool wait);
  rpc::Task<void> ask_rounds(bool wait);
  void apply(const RoundOrder& order);
  void deliver(const Round& round);
  rpc::Task<void> close_rounds();
  std::string waits_text() const;
  void wake();
  rpc::Task<void> read_from(Source* source);
  rpc::Task<void> read_on(Source* source);
  rpc::Task<void> acknowledge_on(Source* source);
  rpc::Task<void> leave(DataServiceStatistics& statistics);
  rpc::Task<void> acknowledge(Source* source, Link::Shared connection);
  rpc::Task<void> settle();
  void fail();
  void fail_with(const std::string& text, const DataWorkerPlace& place);
  void verify_waiting(Duration since) const;
  std::string job_text() const;
  // Elements of a worker that are here and not taken.
  std::size_t ahead(const DataWorkerPlace& worker) const {
    return buffer.waiting(worker) + (rounds ? rounds->here_of(worker) : 0);
  }
  std::size_t quota() const {
    return std::max<std::size_t>(
        1, options.buffer_elements / std::max<std::size_t>(1, sources.size()));
  }

  // The program's demand for elements: if it has none for a while, reading rests.
  struct Demand {
    std::size_t calls = 0;    // of next(), at the moment
    std::uint64_t taken = 0;  // elements, when it was looked at last
    Duration last{0};         // when something was wanted
  };

  rpc::Reactor& reactor;
  rpc::Network& network;
  const ElementSpec& spec;
  DataServiceOptions options;
  LinkOptions link;
  Bytes description;
  Link dispatcher;
  std::uint64_t job = 0;
  bool finished = false, left = false;
  bool resting = false;  // without sources, since the program takes nothing
  Demand demand;
  struct Told {
    std::vector<DataWorkerPlace> workers;  // by the dispatcher, last
    Duration met{0};                       // when there was one, last
  };
  Told told;
  std::unique_ptr<Rounds> rounds;  // of a consumer that reads in rounds
  std::exception_ptr error;
  rpc::Signal changed;
  // The program has taken elements: notified from the thread that did.
  std::shared_ptr<rpc::Signal> demanded = std::make_shared<rpc::Signal>();
  ElementBuffer buffer;
  std::map<DataWorkerPlace, std::unique_ptr<Source>> sources;
  rpc::TaskGroup tasks{[](const std::string&, const ErrorParts&) {}};  // last
};

}  // namespace cairn::service
