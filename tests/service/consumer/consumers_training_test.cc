// Training from a data service: its elements are those of a per-worker dataset.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "coordinator/engine/engine_host.h"
#include "core/disk/memory_disk.h"
#include "core/graph/ops.h"
#include "data/dataset/auto_shard.h"
#include "data/stage/dataset_wire.h"
#include "ps/server/ps_server.h"
#include "service/consumer/consumers.h"
#include "service/consumer/distribute.h"
#include "storage/row_store.h"
#include "strategy/servers/cluster_coordinator.h"
#include "tests/service/over_sockets.h"
#include "worker/lane/pipelines.h"
#include "worker/worker_server.h"

namespace cairn::service {
namespace {

constexpr Duration kPatience = std::chrono::minutes(2);

// A ps and two workers, each of which is one consumer.
class Training : public OverSockets {
 protected:
  Training() {
    servers_.run([this] {
      ps_ = std::make_unique<ps::PsServer>(servers_.reactor(), *sockets_, *disks_, *store_,
                                           ps::PsServerOptions{.cluster = options_.cluster_id});
      options_.cluster.add_task("ps", ps_->address().str());
      for (std::uint32_t i = 0; i < 2; ++i) start_worker(i);
    });
    strategy_ = std::make_unique<ParameterServerStrategy>(
        start_engine_thread(options_, rpc::Transport::kAuto));
    coordinator_ = std::make_unique<ClusterCoordinator>(*strategy_);
  }
  ~Training() override {
    coordinator_.reset();
    strategy_.reset();
    for (auto& consumers : consumers_) consumers->stop();
    servers_.run([this] {
      workers_.clear();
      ps_.reset();
    });
  }
  Dataset from_service(const Dataset& dataset) const {
    return distribute(
        dataset,
        {.dispatcher = address().str(), .job_name = "train", .mode = ProcessingMode::kDynamic});
  }
  // Runs `closures` closures, each of which reads one element; the elements by the worker's number.
  std::map<float, std::vector<std::int64_t>> read(const Dataset& dataset, int closures) {
    auto data = coordinator_->create_per_worker_dataset(dataset);
    auto lane = coordinator_->create_per_worker_values([](const InputContext& context) {
      return Tensor::scalar(static_cast<float>(context.input_pipeline_id));
    });
    Function next = strategy_->function([](Iterator input, Array who) {
      return std::vector<Array>{input.get_next().features["value"], who + Array(0.0f)};
    });
    std::vector<RemoteValue> got;
    for (int i = 0; i < closures; ++i) got.push_back(coordinator_->schedule(next, {data, lane}));
    std::map<float, std::vector<std::int64_t>> values;
    for (RemoteValue& value : got) {
      const auto both = value.get_all(kPatience);
      auto& here = values[both[1].item<float>()];
      for (const std::int64_t one : both[0].values<std::int64_t>()) here.push_back(one);
    }
    return values;
  }
  ClusterCoordinator& coordinator() { return *coordinator_; }
  ParameterServerStrategy& strategy() { return *strategy_; }

 private:
  void start_worker(std::uint32_t i) {
    ConsumersOptions reading;
    reading.role = rpc::Role::kWorker;
    reading.task = i;
    reading.idle = std::chrono::milliseconds(200);
    consumers_.push_back(std::make_unique<Consumers>(reading));
    worker::WorkerOptions options;
    options.index = i;
    options.address = rpc::Address::parse("127.0.0.1:0");
    options.cluster = options_.cluster_id;
    options.open_elements = consumers_.back()->opener();
    workers_.push_back(
        std::make_unique<worker::WorkerServer>(servers_.reactor(), *sockets_, options));
    options_.cluster.add_task("worker", workers_.back()->address().str());
  }

  EngineOptions options_;
  std::unique_ptr<rpc::Network> sockets_ = rpc::make_socket_network();
  MemoryDisk disk_;
  std::unique_ptr<storage::RowStore> store_ = storage::make_memory_row_store(disk_);
  std::unique_ptr<Offload> disks_ = make_thread_offload(1);
  rpc::ReactorThread servers_{"cluster"};
  std::vector<std::unique_ptr<Consumers>> consumers_;
  std::unique_ptr<ps::PsServer> ps_;
  std::vector<std::unique_ptr<worker::WorkerServer>> workers_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<ClusterCoordinator> coordinator_;
};

TEST_F(Training, TwoWorkersSeeEachElementOfOneJobOnce) {
  const auto values = read(from_service(Dataset::range(2000).batch(10)), 200);
  EXPECT_EQ(values.size(), 2u) << "both workers read";
  std::vector<std::int64_t> all;
  for (const auto& [worker, some] : values) all.insert(all.end(), some.begin(), some.end());
  std::ranges::sort(all);
  EXPECT_EQ(all.size(), 2000u);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "an element came twice";
}

TEST_F(Training, TheEndOfTheJobIsTheEndOfTheData) {
  auto data = coordinator().create_per_worker_dataset(from_service(Dataset::range(20).batch(2)));
  Function next =
      strategy().function([](Iterator input) { return input.get_next().features["value"]; });
  for (int i = 0; i < 30; ++i) coordinator().schedule(next, {data});
  EXPECT_THROW(coordinator().join(kPatience), OutOfRangeError);
}

TEST_F(Training, AnIteratorOpenedAtAStateReadsOnFromTheJob) {
  const Dataset dataset = from_service(Dataset::range(10).batch(2));
  IteratorState state;
  std::vector<std::int64_t> firsts;
  {
    auto iterator = open(dataset);
    for (int i = 0; i < 2; ++i)
      firsts.push_back(iterator->next()->at(0).values<std::int64_t>().front());
    state = iterator->state();
    EXPECT_EQ(ordinal(state), 2);
  }
  auto iterator = open(dataset, state);
  iterator->skip_to(1);
  EXPECT_EQ(iterator->ordinal(), 1) << "a mere number";
  while (auto element = iterator->next())
    firsts.push_back(element->at(0).values<std::int64_t>().front());
  EXPECT_EQ(iterator->ordinal(), 4);
  std::ranges::sort(firsts);
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{0, 2, 4, 6, 8}));
}

// 0, 1, 2, and so on, as a data service would hand them out.
class Counted final : public ElementSource {
 public:
  std::optional<Element> next() override { return Element{Tensor::scalar(next_++)}; }

 private:
  std::int64_t next_ = 0;
};

TEST(PipelinesOfAService, ATakeGetsWhatIsNextAndRunAgainTheSame) {
  const auto counted = std::make_shared<Counted>();
  worker::Pipelines pipelines(
      {.open_elements = [&](const Dataset&, const ServiceSource&) { return counted; }});
  pipelines.define(1, distribute(Dataset::range(1000), {.dispatcher = "host:1"}));
  const auto take = [&](std::uint64_t ordinal) {
    const auto taken = pipelines.take({.pipeline = 1, .ordinal = ordinal, .count = 2});
    EXPECT_EQ(taken.position.ordinal, ordinal + 2);
    return taken.elements[0][0].item<std::int64_t>();
  };
  EXPECT_EQ(take(10), 0) << "not the eleventh element";
  EXPECT_EQ(take(4), 2) << "nor one that was before";
  EXPECT_EQ(take(10), 0) << "the closure was run again";
  EXPECT_EQ(take(12), 4);
  EXPECT_EQ(pipelines.open_iterators(), 1u);
}

TEST_F(Training, ADescriptionThatHasTravelledNeedsAClientToBeOpened) {
  const Dataset dataset = from_service(Dataset::range(10).batch(2));
  const Dataset travelled = parse_dataset(serialize(dataset));
  EXPECT_EQ(fingerprint(travelled), fingerprint(dataset));
  EXPECT_EQ(travelled.element_spec().columns[0].name, "value");
  EXPECT_THROW(open(travelled), FailedPreconditionError);
}

// Each on a thread of its own, as processes of a synchronous group would.
TEST_F(Training, ReadersOfAGroupAreGivenTheSameRounds) {
  std::vector<std::vector<std::int64_t>> firsts(2);
  const auto read_all = [&](std::uint32_t index) {
    const Dataset dataset =
        distribute(Dataset::range(400).batch(4), {.dispatcher = address().str(),
                                                  .job_name = "rounds",
                                                  .mode = ProcessingMode::kDynamic,
                                                  .num_consumers = 2,
                                                  .consumer_index = index});
    const auto iterator = open(dataset);
    while (const auto element = iterator->next())
      firsts[index].push_back(element->at(0).values<std::int64_t>().front());
  };
  std::thread other([&] { read_all(1); });
  read_all(0);
  other.join();
  ASSERT_EQ(firsts[0].size(), 50u);
  ASSERT_EQ(firsts[1].size(), 50u);
  for (std::size_t round = 0; round < 50; ++round)
    EXPECT_EQ(firsts[1][round], firsts[0][round] + 4) << "round " << round;
}

TEST_F(Training, APlaceInAGroupTravelsWithTheDescription) {
  const auto place = [](std::uint32_t index) {
    return distribute(Dataset::range(4), {.dispatcher = "host:1",
                                          .job_name = "rounds",
                                          .num_consumers = 2,
                                          .consumer_index = index});
  };
  EXPECT_EQ(fingerprint(parse_dataset(serialize(place(1)))), fingerprint(place(1)));
  EXPECT_NE(fingerprint(place(0)), fingerprint(place(1)));
}

TEST_F(Training, WhatAServiceDealsOutIsNotDealtOutAgain) {
  const Dataset dataset = from_service(Dataset::range(10).batch(2));
  EXPECT_THROW(distribute(dataset, {.dispatcher = "host:1"}), InvalidArgumentError);
  EXPECT_THROW(auto_shard(dataset, AutoShardPolicy::kData, 2, 0), InvalidArgumentError);
  EXPECT_EQ(auto_shard(dataset, AutoShardPolicy::kAuto, 2, 0).applied, AutoShardPolicy::kOff);
  EXPECT_THROW(cardinality(dataset), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::service
