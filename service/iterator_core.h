// What is behind a DataServiceIterator: its job, the data workers that it reads from, and what it
// has ahead. For this room's .cc files.
#pragma once
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rpc/signal.h"
#include "rpc/task_group.h"
#include "service/data_service_iterator.h"
#include "service/dispatcher.h"
#include "service/element_buffer.h"
#include "service/link.h"

namespace cairn::service {

// One data worker, as this consumer reads from it.
struct DataServiceIterator::Source {
  WorkerPlace place;
  std::unique_ptr<Link> link;
  std::string trouble;  // why it cannot be read at the moment
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
  rpc::Task<void> read_from(Source* source);
  rpc::Task<void> read_on(Source* source);
  rpc::Task<void> acknowledge_on(Source* source);
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

  // Of the program.
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
  bool resting = false;  // without sources, since nobody asks
  Demand demand;
  std::vector<WorkerPlace> workers;  // as the dispatcher told last
  Duration met{0};                   // when there was a data worker, last
  std::exception_ptr error;
  rpc::Signal changed;
  // The program has taken elements: notified from the thread that did.
  std::shared_ptr<rpc::Signal> demanded = std::make_shared<rpc::Signal>();
  ElementBuffer buffer;
  std::map<WorkerPlace, std::unique_ptr<Source>> sources;
  rpc::TaskGroup tasks{[](const std::string&, const ErrorParts&) {}};  // last
};

}  // namespace cairn::service
