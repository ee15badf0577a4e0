// A whole cluster in one thread: coordinator, ps and workers on a simulated network, disk and
// clock.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_host.h"
#include "core/disk/memory_disk.h"
#include "ps/server/ps_server.h"
#include "rpc/loop/sim_offload.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/net/sim_network.h"
#include "storage/row_store.h"
#include "strategy/servers/cluster_coordinator.h"
#include "strategy/servers/hybrid_strategy.h"
#include "worker/worker_server.h"

namespace cairn {

inline Dataset numbers(std::int64_t n) { return Dataset::range(n).batch(1); }

// virtual: longer than anything here takes
constexpr Duration kPatience = std::chrono::minutes(10);

struct SimulatedClusterOptions {
  int ps = 2, workers = 2;
  std::uint32_t shards = 1, lanes = 1;
  std::uint64_t seed = 1;
  ParameterServerOptions strategy = {};
  rpc::SimNetworkOptions network = {.seed = seed};
  ps::PushObserver* observer = nullptr;
  // Instead of it one for each ps.
  std::function<ps::PushObserver*(int ps)> observer_of = {};
  std::size_t piece_bytes_max = worker::ShardLinkOptions().piece_bytes_max;
  Duration disk_delay_max{0};   // of each piece of work on a process's disk threads
  std::size_t save_memory = 0;  // of a ps, in bytes; 0: its default
  // So many rows of a hashed table are in memory on a shard, and the others elsewhere. 0: all.
  std::int64_t rows_in_memory = 0;
  std::size_t save_batch_bytes = ps::kSaveBatchBytes;
  std::size_t restore_batch_bytes = ps::kRestoreBatchBytes;  // on demand
  // The coordinator keeps a journal, in the folder "/journal", and goes on with it.
  bool journal = false;
};

// Members in the order in which they may go: the network last.
class SimulatedCluster {
 public:
  explicit SimulatedCluster(SimulatedClusterOptions options) : options_(std::move(options)) {
    ps_offload_.resize(static_cast<std::size_t>(options_.ps));
    for (int i = 0; i < options_.ps; ++i) {
      ps_.emplace_back();
      start_ps(i);
    }
    for (int i = 0; i < options_.workers; ++i) {
      workers_.emplace_back();
      start_worker(i);
    }
    start_chief();
  }
  ~SimulatedCluster() {
    strategy_.reset();
    workers_.clear();
    ps_.clear();
  }

  ParameterServerStrategy& strategy() { return *strategy_; }
  rpc::SimNetwork& network() { return network_; }
  MemoryDisk& disk() { return disk_; }
  rpc::SimReactor& reactor() { return reactor_; }
  const rpc::SimReactor& reactor() const { return reactor_; }
  bool has_chief() const { return strategy_ != nullptr; }
  bool has_ps(int i) const { return ps_.at(static_cast<std::size_t>(i)) != nullptr; }
  ps::PsServer& ps(int i) { return *ps_.at(static_cast<std::size_t>(i)); }
  bool has_worker(int i) const { return workers_.at(static_cast<std::size_t>(i)) != nullptr; }
  void run_for(Duration time) { reactor_.advance(time); }

  void start_ps(int i) {
    ps::PsServerOptions options;
    options.index = static_cast<std::uint32_t>(i);
    options.listen = "sim://ps" + std::to_string(i);
    options.cluster = "cairn";
    options.shards = options_.shards;
    options.incarnation = ++incarnations_;
    options.shard.observer = options_.observer_of ? options_.observer_of(i) : options_.observer;
    options.shard.save_memory.bytes = options_.save_memory;
    options.save_batch_bytes = options_.save_batch_bytes;
    options.restore_batch_bytes = options_.restore_batch_bytes;
    if (options_.rows_in_memory > 0) {
      options.shard.tiering.memory_bytes = 1;
      options.shard.tiering.rows_min = options_.rows_in_memory;
    }
    at(ps_offload_, i) = make_offload();
    at(ps_, i) = std::make_unique<ps::PsServer>(reactor_, network_.host("ps" + std::to_string(i)),
                                                *at(ps_offload_, i), *store_, options);
  }
  void start_worker(int i) {
    worker::WorkerOptions options;
    options.index = static_cast<std::uint32_t>(i);
    options.address = rpc::Address::parse("sim://worker" + std::to_string(i));
    options.cluster = "cairn";
    options.lanes = options_.lanes;
    options.threads = worker::LaneThreads::kShared;
    options.incarnation = ++incarnations_;
    options.link.shared_min = 16;  // so that small models share memory too
    options.link.piece_bytes_max = options_.piece_bytes_max;
    at(workers_, i) = std::make_unique<worker::WorkerServer>(
        reactor_, network_.host("worker" + std::to_string(i)), options);
  }
  void kill_ps(int i) {
    network_.crash("ps" + std::to_string(i));
    at(ps_, i).reset();
    at(ps_offload_, i).reset();
  }
  void kill_worker(int i) {
    network_.crash("worker" + std::to_string(i));
    at(workers_, i).reset();
  }
  // Everything that the coordinator's process holds is gone: variables, datasets and remote values
  // of it must not be used again.
  void kill_chief() {
    network_.crash("chief");
    strategy_.reset();
    chief_offload_.reset();
  }
  // Nothing that it begins to write from now on is written: for one that is going to be killed.
  void stop_chief_disk() {
    if (chief_offload_) chief_offload_->slow_down(std::chrono::hours(1));
  }
  // That of the chiefs that are started from now on.
  void set_consistency(Consistency consistency) {
    options_.strategy.consistency = std::move(consistency);
  }
  // With its machine, whose power goes: what was written to the disk and not synced is gone too.
  void kill_chief_by_power() {
    kill_chief();
    disk_.interrupt_power();
  }
  // Connects anew.
  // Errors  Unavailable, as ParameterServerStrategy's: then there is still no chief.
  void start_chief() {
    EngineOptions options = options_.strategy.engine;
    options.session = (random_key(options_.seed, "session") + 2 * ++sessions_) | 1;
    options.variables = {options_.strategy.partitioner, options_.strategy.placement,
                         options_.strategy.seed};
    options.consistency = options_.strategy.consistency;
    options.variables.check_replicas = true;
    options.cluster.add_task("chief", "sim://chief");
    for (int i = 0; i < options_.ps; ++i)
      options.cluster.add_task("ps", "sim://ps" + std::to_string(i));
    for (int i = 0; i < options_.workers; ++i)
      options.cluster.add_task("worker", "sim://worker" + std::to_string(i));
    if (options_.journal) options.journal.folder = "/journal";
    chief_offload_ = make_offload();
    auto engine =
        start_simulated_engine(options, {reactor_, network_.host("chief"), *chief_offload_, disk_});
    strategy_ = HybridConsistency::is(options.consistency)
                    ? std::make_unique<HybridStrategy>(std::move(engine))
                    : std::make_unique<ParameterServerStrategy>(std::move(engine),
                                                                options_.strategy.devices);
  }
  void slow_disks(Duration by) {
    if (chief_offload_) chief_offload_->slow_down(by);
    for (auto& offload : ps_offload_)
      if (offload) offload->slow_down(by);
  }

 private:
  template <typename T>
  static T& at(std::vector<T>& all, int i) {
    return all.at(static_cast<std::size_t>(i));
  }
  std::unique_ptr<rpc::SimOffload> make_offload() {
    return std::make_unique<rpc::SimOffload>(reactor_, random_key(options_.seed, ++offloads_),
                                             options_.disk_delay_max);
  }

  SimulatedClusterOptions options_;
  std::unique_ptr<rpc::SimReactor> owned_ = std::make_unique<rpc::SimReactor>();
  rpc::SimReactor& reactor_ = *owned_;
  rpc::SimNetwork network_{reactor_, options_.network};
  MemoryDisk disk_;
  std::unique_ptr<storage::RowStore> store_ = storage::make_memory_row_store(disk_);
  std::uint64_t incarnations_ = 0, offloads_ = 0, sessions_ = 0;
  std::vector<std::unique_ptr<rpc::SimOffload>> ps_offload_;
  std::unique_ptr<rpc::SimOffload> chief_offload_;
  std::vector<std::unique_ptr<ps::PsServer>> ps_;
  std::vector<std::unique_ptr<worker::WorkerServer>> workers_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
};

// v on one shard, w on another, and a table over all: each run of the function adds one to each.
struct Counters {
  Variable v, w, rows;
  static constexpr std::int64_t kRows = 100;
  explicit Counters(Strategy& strategy) {
    v = strategy.create_variable({.name = "v", .shape = {}, .initializer = Initializer::zeros()});
    w = strategy.create_variable({.name = "w", .shape = {}, .initializer = Initializer::zeros()});
    rows = strategy.create_variable(
        {.name = "rows", .shape = {kRows, 1}, .initializer = Initializer::zeros()});
  }
  // `ids` [n]: the rows to add one to.
  void add_one(const Array& ids) const {
    v.assign_add(Array(1.0f));
    w.assign_add(Array(1.0f));
    rows.scatter_add(ids, Array(Tensor::of<float>({1, 1}, std::vector<float>{1.0f})));
  }
  // The same as a model under HybridStrategy can: by gradients.
  void subtract_gradients(const Array& ids) const {
    for (const Variable& each : {v, w})
      each.update({.kind = RuleKind::kSgd}, Array(-1.0f), Array(1.0f));
    const Array minus(Tensor::of<float>({1, 1}, std::vector<float>{-1.0f}));
    rows.update({.kind = RuleKind::kSgd}, IndexedSlices{ids, minus, rows.shape()}, Array(1.0f));
  }
  float value_of_v() const { return v.read().eval().item<float>(); }
  float value_of_w() const { return w.read().eval().item<float>(); }
  std::vector<float> value_of_rows() const {
    Tensor all = rows.read().eval();
    auto values = all.values<float>();
    return {values.begin(), values.end()};
  }
};

}  // namespace cairn
