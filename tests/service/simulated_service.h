// A data service in one thread: a dispatcher, data workers and consumers on a simulated network,
// disk and clock.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/disk/memory_disk.h"
#include "rpc/loop/sim_offload.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/net/sim_network.h"
#include "service/consumer/data_service_iterator.h"
#include "service/dispatcher/dispatcher_server.h"
#include "service/worker/data_worker_server.h"

namespace cairn::service {

struct SimulatedServiceOptions {
  int workers = 2;
  bool listed = false;  // the dispatcher has the list of the workers' addresses
  std::uint64_t seed = 1;
  WorkerJobOptions job = {};
  Duration offload_delay_max = std::chrono::microseconds(300);
};

// The elements that a consumer was given, and how its reading ended.
struct Reading {
  std::vector<std::vector<std::int64_t>> elements;  // their values
  std::string error;                                // "Code: message"
  bool ended = false;
  DataServiceStatistics statistics;
  std::vector<std::int64_t> values() const {
    std::vector<std::int64_t> all;
    for (const auto& element : elements) all.insert(all.end(), element.begin(), element.end());
    return all;
  }
};

class SimulatedService {
 public:
  explicit SimulatedService(SimulatedServiceOptions given)
      : options(given), network(reactor, {.seed = given.seed}) {
    start_dispatcher();
    for (int i = 0; i < options.workers; ++i) {
      workers_.emplace_back();
      start_worker(i);
    }
    reactor.advance(std::chrono::milliseconds(100));  // they report
  }
  ~SimulatedService() {
    consumers_.clear();
    for (auto& worker : workers_) worker = {};
    dispatcher_ = {};
  }

  static std::string worker_name(int i) { return str("worker", i); }

  void start_dispatcher() {
    DispatcherOptions wanted;
    wanted.journal = "/journal";
    wanted.first_job = 1;
    if (options.listed)
      for (int i = 0; i < options.workers; ++i) wanted.workers.push_back("sim://" + worker_name(i));
    wanted.log = [](LogLevel, const std::string&) {};
    dispatcher_.offload = make_offload();
    dispatcher_.server = std::make_unique<DispatcherServer>(
        reactor, network.host("dispatcher"), *dispatcher_.offload, disk,
        Door{.address = rpc::Address::parse("sim://dispatcher"), .incarnation = ++processes_},
        wanted);
  }
  void kill_dispatcher() {
    network.crash("dispatcher");
    dispatcher_ = {};
  }
  void start_worker(int i) {
    DataWorkerOptions wanted;
    wanted.dispatcher = rpc::Address::parse("sim://dispatcher");
    wanted.job = options.job;
    wanted.log = [](LogLevel, const std::string&) {};
    auto& worker = workers_.at(static_cast<std::size_t>(i));
    worker.offload = make_offload();
    worker.server = std::make_unique<DataWorkerServer>(
        reactor, network.host(worker_name(i)), *worker.offload,
        Door{.address = rpc::Address::parse("sim://" + worker_name(i)),
             .index = static_cast<std::uint32_t>(i),
             .incarnation = ++processes_},
        wanted);
  }
  void kill_worker(int i) {
    network.crash(worker_name(i));
    workers_.at(static_cast<std::size_t>(i)) = {};
  }
  bool worker_lives(int i) const {
    return workers_.at(static_cast<std::size_t>(i)).server != nullptr;
  }
  bool dispatcher_lives() const { return dispatcher_.server != nullptr; }

  // A consumer; it reads when something waits for it.
  std::unique_ptr<DataServiceIterator> consumer(const Dataset& dataset, ProcessingMode mode,
                                                const std::string& job = "",
                                                std::size_t buffer = 4) {
    return consumer(dataset,
                    DataServiceOptions{.job_name = job, .mode = mode, .buffer_elements = buffer});
  }
  std::unique_ptr<DataServiceIterator> consumer(const Dataset& dataset, DataServiceOptions wanted,
                                                const std::string& host = "consumers") {
    wanted.dispatcher = rpc::Address::parse("sim://dispatcher");
    wanted.identity = ++identities_;
    return std::make_unique<DataServiceIterator>(reactor, network.host(host), dataset, wanted);
  }
  // Reads it to its end in the background; `pause` between elements.
  std::shared_ptr<Reading> read(std::unique_ptr<DataServiceIterator> iterator,
                                Duration pause = Duration(0)) {
    auto reading = std::make_shared<Reading>();
    consumers_.push_back(std::make_unique<Consumer>());
    Consumer& consumer = *consumers_.back();
    consumer.iterator = std::move(iterator);
    consumer.tasks.spawn("reading", read_all(&reactor, consumer.iterator.get(), reading, pause));
    return reading;
  }
  std::shared_ptr<Reading> read(const Dataset& dataset, ProcessingMode mode,
                                const std::string& job = "", Duration pause = Duration(0)) {
    return read(consumer(dataset, mode, job), pause);
  }
  template <typename Condition>
  bool run_until(Condition condition, Duration limit = std::chrono::minutes(5)) {
    const Duration until = reactor.now() + limit;
    while (!condition() && reactor.now() < until) reactor.advance(std::chrono::milliseconds(1));
    return condition();
  }
  bool finish(const std::vector<std::shared_ptr<Reading>>& readings,
              Duration limit = std::chrono::minutes(5)) {
    const auto ended = [](const auto& reading) { return reading->ended; };
    return run_until([&] { return std::ranges::all_of(readings, ended); }, limit);
  }
  const JobBook& book() const { return dispatcher_.server->book(); }

  const SimulatedServiceOptions options;
  rpc::SimReactor reactor;
  rpc::SimNetwork network;
  MemoryDisk disk;

 private:
  // Its pool of threads goes after the server.
  template <typename Server>
  struct Process {
    std::unique_ptr<rpc::SimOffload> offload;
    std::unique_ptr<Server> server;
    Process& operator=(Process&& other) noexcept {
      server = std::move(other.server);
      offload = std::move(other.offload);
      return *this;
    }
    Process() = default;
    Process(Process&&) = default;
  };
  struct Consumer {
    std::unique_ptr<DataServiceIterator> iterator;
    rpc::TaskGroup tasks{[](const std::string&, const ErrorParts&) {}};
  };

  static rpc::Task<void> read_all(rpc::Reactor* reactor, DataServiceIterator* iterator,
                                  std::shared_ptr<Reading> reading, Duration pause) {
    try {
      for (;;) {
        auto element = co_await iterator->next();
        if (!element) break;
        const auto values = element->at(0).values<std::int64_t>();
        reading->elements.emplace_back(values.begin(), values.end());
        if (pause > Duration(0)) co_await reactor->sleep(pause);
      }
    } catch (const Error& error) {
      reading->error = str(code_name(error.code()), ": ", error.what());
    }
    reading->statistics = iterator->statistics();
    reading->ended = true;
  }
  std::unique_ptr<rpc::SimOffload> make_offload() {
    return std::make_unique<rpc::SimOffload>(reactor, options.seed * 1000 + processes_,
                                             options.offload_delay_max);
  }

  std::uint64_t processes_ = 0, identities_ = 0;
  Process<DispatcherServer> dispatcher_;
  std::vector<Process<DataWorkerServer>> workers_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
};

}  // namespace cairn::service
