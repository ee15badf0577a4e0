// What is behind a DataServiceIterator: its job, the data workers that it reads from, and what it
// has ahead. For this room's .cc files.
#pragma once
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rpc/signal.h"
#include "rpc/task_group.h"
#include "service/data_service_iterator.h"
#include "service/dispatcher.h"
#include "service/link.h"

namespace cairn::service {

// One data worker, as this consumer reads from it.
struct DataServiceIterator::Source {
  std::unique_ptr<Link> link;
  std::set<std::uint64_t> handed;  // numbers to be acknowledged
  std::size_t here = 0;            // elements that wait in the buffer
  std::string trouble;             // why it cannot be read at the moment
  rpc::Signal changed;
  rpc::TaskGroup tasks{[](const std::string&, const ErrorParts&) {}};  // last
};

struct DataServiceIterator::Core {
  Core(rpc::Reactor& reactor, rpc::Network& network, const Dataset& dataset,
       const ElementSpec& spec, DataServiceOptions given);
  ~Core() { tasks.cancel_all(); }

  rpc::Hello hello() const;
  rpc::Task<void> follow();
  rpc::Task<std::uint64_t> open_job();
  void meet(const std::vector<WorkerPlace>& workers);
  void drop(const WorkerPlace& worker);
  void rest_if_idle();
  void wake();
  rpc::Task<void> read_from(WorkerPlace place, Source* source);
  rpc::Task<void> read_on(WorkerPlace place, Source* source);
  rpc::Task<void> acknowledge_on(Source* source);
  void forget_buffered(const WorkerPlace& place, Source& source);
  Element hand_out(DataServiceStatistics& statistics);
  rpc::Task<void> leave(DataServiceStatistics& statistics);
  rpc::Task<void> acknowledge(Source* source, Link::Shared connection);
  rpc::Task<void> settle();
  void fail();
  void fail_with(const std::string& text, const WorkerPlace& place);
  void verify_waiting(Duration since) const;
  std::string job_text() const;
  std::size_t quota() const {
    return std::max<std::size_t>(
        1, options.buffer_elements / std::max<std::size_t>(1, sources.size()));
  }

  // Of next().
  struct Demand {
    std::size_t calls = 0;  // at the moment
    Duration last{0};       // when one ended
  };
  struct Buffered {
    WorkerPlace from;
    std::uint64_t number;
    Element columns;
  };

  rpc::Reactor& reactor;
  rpc::Network& network;
  const ElementSpec& spec;
  DataServiceOptions options;
  LinkOptions link;
  Bytes description;
  Link dispatcher;
  std::uint64_t job = 0, handed = 0;
  bool finished = false, left = false;
  bool resting = false;  // without sources, since nobody asks
  Demand demand;
  std::vector<WorkerPlace> workers;  // as the dispatcher told last
  Duration met{0};                   // when there was a data worker, last
  std::deque<Buffered> buffer;
  std::exception_ptr error;
  rpc::Signal changed;
  std::map<WorkerPlace, std::unique_ptr<Source>> sources;
  rpc::TaskGroup tasks{[](const std::string&, const ErrorParts&) {}};  // last
};

}  // namespace cairn::service
