// Lanes' groups on a simulated network: a process per rank, each with an acceptor that was there
// before any group.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rpc/loop/error_wire.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/net/sim_network.h"
#include "rpc/server/server.h"
#include "tests/worker/lane/lane_fixture.h"
#include "worker/lane/lane_group.h"

namespace cairn::worker {

// A promise's outcome, which is known as soon as it is settled.
struct Outcome {
  std::string error;  // "Code: message @task"; empty: it ended well
  bool settled = false;
  kj::Promise<void> promise = nullptr;
};

class LaneGroups {
 public:
  explicit LaneGroups(std::uint32_t workers, std::uint64_t seed = 1)
      : network(reactor, {.seed = seed}), processes_(workers) {
    for (std::uint32_t task = 0; task < workers; ++task) start(task);
  }
  ~LaneGroups() {
    for (auto& process : processes_) process.reset();
  }

  static std::string host(std::uint32_t task) { return str("w", task); }
  void start(std::uint32_t task) {
    processes_[task].reset();
    processes_[task] = std::make_unique<Process>(*this, task, ++incarnations_);
  }
  // As by SIGKILL.
  void kill(std::uint32_t task) {
    network.crash(host(task));
    processes_[task].reset();
  }
  LaneGroup& operator[](std::uint32_t task) { return processes_[task]->group; }

  // The configuration that the coordinator sends to one of these workers, by rank.
  static GroupConfig config(std::uint64_t number, std::uint32_t rank,
                            const std::vector<std::uint32_t>& tasks) {
    GroupConfig out{number, rank, {}};
    for (const std::uint32_t task : tasks) out.members.push_back({task, "sim://" + host(task)});
    return out;
  }
  std::shared_ptr<Outcome> join(std::uint64_t number, std::uint32_t rank,
                                const std::vector<std::uint32_t>& tasks) {
    return watch((*this)[tasks[rank]].join(config(number, rank, tasks)));
  }
  // All of them; what it came to for each.
  std::vector<std::string> join_all(std::uint64_t number, const std::vector<std::uint32_t>& tasks) {
    std::vector<std::shared_ptr<Outcome>> joined;
    for (std::uint32_t rank = 0; rank < tasks.size(); ++rank)
      joined.push_back(join(number, rank, tasks));
    return errors(joined);
  }
  std::shared_ptr<Outcome> all_reduce(std::uint32_t task, Tensor& value) {
    return watch((*this)[task].all_reduce({}, {{ReduceOp::kSum, value.dtype(), value.elements(),
                                                value.mutable_raw(), value.owner()}}));
  }
  // All-reduces `values`, which are indexed by rank, and returns each member's error.
  std::vector<std::string> all_reduce_all(const std::vector<std::uint32_t>& tasks,
                                          std::vector<Tensor>& values) {
    std::vector<std::shared_ptr<Outcome>> reduced;
    for (std::size_t rank = 0; rank < tasks.size(); ++rank)
      reduced.push_back(all_reduce(tasks[rank], values[rank]));
    return errors(reduced);
  }

  static std::shared_ptr<Outcome> watch(kj::Promise<void> promise) {
    auto outcome = std::make_shared<Outcome>();
    auto failed = [raw = outcome.get()](kj::Exception&& error) {
      raw->error = str(text_of(error), " @", rpc::from_kj(error).task);
      raw->settled = true;
    };
    auto well = [raw = outcome.get()] { raw->settled = true; };
    outcome->promise = promise.then(kj::mv(well), kj::mv(failed)).eagerlyEvaluate(nullptr);
    return outcome;
  }
  std::string wait(const std::shared_ptr<Outcome>& outcome) {
    for (int i = 0; i < 100'000 && !outcome->settled; ++i)
      reactor.advance(std::chrono::milliseconds(1));
    return outcome->settled ? outcome->error : "it never ended";
  }
  std::vector<std::string> errors(const std::vector<std::shared_ptr<Outcome>>& outcomes) {
    std::vector<std::string> all;
    for (const auto& each : outcomes) all.push_back(wait(each));
    return all;
  }
  // A worker's connection to the lane of worker 0.
  std::unique_ptr<rpc::Connection> dial(std::uint32_t task, std::uint64_t group) {
    rpc::Hello hello;
    hello.cluster = "test";
    hello.role = rpc::Role::kWorker;
    hello.task = task;
    hello.session = group;
    hello.endpoint = 1;
    return reactor.wait(
        network.host(host(task))
            .connect(reactor, rpc::Address::parse("sim://w0"), hello, std::chrono::seconds(5)));
  }

  rpc::SimReactor reactor;
  rpc::SimNetwork network;

 private:
  struct Process {
    Process(LaneGroups& cluster, std::uint32_t task, std::uint64_t incarnation)
        : group(cluster.reactor, cluster.network.host(host(task)), options(task, incarnation)) {
      rpc::AcceptorOptions own;
      own.cluster = "test";
      own.role = rpc::Role::kWorker;
      own.task = task;
      own.incarnation = incarnation;
      auto none = [](const rpc::PeerInfo&, rpc::Connection&) {
        return capnp::Capability::Client(nullptr);
      };
      auto serve = [this](const rpc::PeerInfo& peer, rpc::Connection& connection) {
        return group.serve(peer, connection);
      };
      door = std::make_unique<rpc::Acceptor>(
          cluster.network.host(host(task)), rpc::Address::parse("sim://" + host(task)), own,
          std::vector<rpc::Endpoint>{{&cluster.reactor, none}, {&cluster.reactor, serve}});
    }
    static LaneGroupOptions options(std::uint32_t task, std::uint64_t incarnation) {
      LaneGroupOptions options;
      options.cluster = "test";
      options.task = task;
      options.incarnation = incarnation;
      return options;
    }
    LaneGroup group;
    std::unique_ptr<rpc::Acceptor> door;
  };
  std::vector<std::unique_ptr<Process>> processes_;  // by task; null: it is gone
  std::uint64_t incarnations_ = 100;
};

}  // namespace cairn::worker
