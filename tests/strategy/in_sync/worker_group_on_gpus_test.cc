// Workers, each a thread here, whose replicas have a fake GPU each: what the GPUs of all of them
// sum, who is named if they cannot, and what ends their wait for one that has failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collective/local/thread_group.h"
#include "core/graph/ops.h"
#include "nn/nn.h"
#include "strategy/in_sync/worker_group.h"
#include "tests/collective/network/socket_group.h"
#include "tests/strategy/in_sync/mirrored_on_gpus.h"
#include "tests/strategy/in_sync/workers_in_step.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeGpus;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::message_of;
using testing::on_threads;
using ::testing::Pointwise;
using Wish = CommunicationImplementation;

constexpr int kWorkers = 2;

// Calls that join the GPUs of a worker. `prepare` may change them first.
class Joining : public ::testing::Test {
 protected:
  std::vector<std::string> join(Wish wish) {
    auto members = make_thread_group(kWorkers);
    texts_.assign(kWorkers, "");
    return on_threads(kWorkers, [&](int rank) {
      std::vector<Device*> devices;
      for (const NamedDevice& each : gpus_[static_cast<std::size_t>(rank)]->named())
        devices.push_back(each.device);
      const DeviceGroup group = join_devices_of_workers(
          members[static_cast<std::size_t>(rank)].get(), devices, wish, std::chrono::minutes(1));
      texts_[static_cast<std::size_t>(rank)] = str(group.members.size(), " ", group.text);
    });
  }
  // Under kAuto they say it, under kNccl they are refused.
  void expect_none(const std::string& why) {
    EXPECT_THAT(join(Wish::kAuto), Each(""));
    EXPECT_THAT(texts_, Each("0 " + why));
    EXPECT_THAT(join(Wish::kNccl), Each(AllOf(HasSubstr("FailedPrecondition"), HasSubstr(why),
                                              HasSubstr("choose kAuto"))));
  }
  testing::FakeDriver& second_of_worker_1() { return gpus_[1]->driver(1); }

  std::vector<std::unique_ptr<FakeGpus>> gpus_ = [] {
    std::vector<std::unique_ptr<FakeGpus>> made;
    for (int i = 0; i < kWorkers; ++i) made.push_back(std::make_unique<FakeGpus>(2));
    return made;
  }();
  std::vector<std::string> texts_;  // by worker
};

TEST_F(Joining, IsOfAllWorkersUnlessTheProgramWantsARing) {
  for (const Wish wish : {Wish::kAuto, Wish::kNccl}) {
    EXPECT_THAT(join(wish), Each(""));
    EXPECT_THAT(texts_, Each("2 by fake drivers"));
  }
  EXPECT_THAT(join(Wish::kRing), Each(""));
  EXPECT_THAT(texts_, Each("0 CommunicationImplementation::kRing says so"));
}

TEST_F(Joining, NamesAWorkerWithoutNccl) {
  gpus_[1]->driver(0).set_sum_means({.by = {}, .why_not = "NCCL is not found", .chip = "a"});
  expect_none("worker 1: NCCL is not found");
}

TEST_F(Joining, NamesAWorkerWithAnotherVersion) {
  for (const int gpu : {0, 1})
    gpus_[1]->driver(gpu).set_sum_means({.by = "by NCCL 2.18.1", .chip = str(gpu)});
  expect_none("worker 0 sums by fake drivers, and worker 1 by NCCL 2.18.1: all must have the same");
}

TEST_F(Joining, NamesWorkersThatHaveTheSameGpu) {
  second_of_worker_1().set_sum_means(gpus_[0]->driver(0).sum_means());
  expect_none("gpu:0 of worker 0 and gpu:1 of worker 1 are the same GPU");
}

TEST_F(Joining, NamesAWorkerThatCannotConnectAndLeavesNobodyConnected) {
  gpus_[1]->driver(0).fail_joining("no route");
  expect_none("worker 1 could not connect: no route");
}

TEST_F(Joining, NamesAWorkerOnACpu) {
  auto members = make_thread_group(kWorkers);
  std::vector<std::string> texts(kWorkers);
  on_threads(kWorkers, [&](int rank) {
    Device* const device = rank == 0 ? gpus_[0]->named()[0].device : &cpu_device();
    texts[static_cast<std::size_t>(rank)] =
        join_devices_of_workers(members[static_cast<std::size_t>(rank)].get(), {&device, 1},
                                Wish::kAuto, std::chrono::minutes(1))
            .text;
  });
  EXPECT_THAT(texts, Each("worker 1: cpu has no memory of its own"));
}

TEST_F(Joining, IsOfOneWorkerAloneAsOfMany) {
  Device* const shared = gpus_[0]->named()[0].device;
  const std::vector<Device*> twice = {shared, shared}, two = {shared, gpus_[0]->named()[1].device};
  const auto alone = [](const std::vector<Device*>& devices, Wish wish) {
    return join_devices_of_workers(nullptr, devices, wish, std::chrono::minutes(1));
  };
  EXPECT_EQ(alone(two, Wish::kNccl).members.size(), 2u);
  EXPECT_EQ(alone(twice, Wish::kAuto).text, "replicas share gpu:0");
  EXPECT_THAT(message_of([&] { alone(twice, Wish::kNccl); }), HasSubstr("replicas share gpu:0"));
}

// ---- training ----

// MultiWorkerMirroredStrategy names its devices, and has no drivers to show.
struct WorkerParts {
  WorkerParts(std::unique_ptr<Collective> member, const FakeGpus& gpus)
      : devices(gpus.named()),
        runtime(std::make_unique<ReplicaRuntime>(3, static_cast<int>(devices.size()),
                                                 ReplicaRuntime::Rows::kCopies,
                                                 with_advice(std::move(member)))) {
    std::vector<ReplicaGroup::Member> replicas;
    for (std::size_t i = 0; i < devices.size(); ++i)
      replicas.push_back({*devices[i].device, runtime->store(static_cast<int>(i))});
    runner = std::make_unique<WorkerRunner>(std::move(replicas), *runtime->group(),
                                            std::chrono::minutes(1));
  }
  std::vector<NamedDevice> devices;
  std::unique_ptr<ReplicaRuntime> runtime;
  std::unique_ptr<ReplicaRunner> runner;
};
class Worker final : public InSyncStrategy {
 public:
  // `check_replicas` as InSyncOptions has it; it copies the variables.
  Worker(std::unique_ptr<Collective> member, const FakeGpus& gpus, bool check_replicas)
      : Worker(WorkerParts(std::move(member), gpus), check_replicas) {}

 private:
  Worker(WorkerParts parts, bool check_replicas)
      : InSyncStrategy(std::move(parts.runtime), parts.devices, std::move(parts.runner),
                       check_replicas) {}
};

// A layer, whose share is dense, a table, whose is sparse, and a scalar.
class OnGpus : public ::testing::TestWithParam<int> {
 protected:
  using Body = std::function<void(int rank, InSyncStrategy&)>;
  std::vector<std::string> on_gpus(const Body& body, bool check_replicas = true) {
    auto members = testing::make_socket_group(kWorkers, std::chrono::minutes(1));
    return on_threads(kWorkers, [&](int rank) {
      Worker strategy(std::move(members[static_cast<std::size_t>(rank)]),
                      *gpus_[static_cast<std::size_t>(rank)], check_replicas);
      body(rank, strategy);
    });
  }
  int replicas() const { return GetParam(); }

  std::vector<std::unique_ptr<FakeGpus>> gpus_ = [] {
    std::vector<std::unique_ptr<FakeGpus>> made;
    for (int i = 0; i < kWorkers; ++i) made.push_back(std::make_unique<FakeGpus>(GetParam()));
    return made;
  }();
};

INSTANTIATE_TEST_SUITE_P(Each, OnGpus, ::testing::Values(1, 2), [](const auto& info) {
  return str(info.param, info.param == 1 ? "Replica" : "Replicas");
});

std::vector<float> trained_under(InSyncStrategy& strategy) {
  auto scope = strategy.scope();
  const auto variable = [&](const char* name, Shape shape) {
    return strategy.create_variable(
        {.name = name, .shape = std::move(shape), .initializer = Initializer::uniform(-1, 1)});
  };
  Variable w = variable("w", {3, 4}), table = variable("table", {9, 3}), bias = variable("b", {});
  nn::SGD optimizer({.learning_rate = 0.1f, .momentum = 0.9f});
  Function step = strategy.function([&](Array scale) {
    const int id = get_replica_context().replica_id_in_sync_group();
    const Array ids(Tensor::of<std::int64_t>({3}, std::vector<std::int64_t>{id, 4, 2 * id}));
    const Array made = matmul(table.gather(ids), w.read()) + bias.read();
    optimizer.minimize(mean(square(made - scale)) / 4.0f);
  });
  for (int i = 0; i < 5; ++i) strategy.run(step, {1.0f});
  std::vector<float> all;
  for (const Variable& each : {w, table, bias}) {
    const Tensor value = each.read().eval();
    const auto values = value.values<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_P(OnGpus, WorkersLearnWhatTheyLearnOnCpus) {
  std::vector<float> wanted;
  EXPECT_THAT(testing::on_workers(kWorkers,
                                  [&](MultiWorkerMirroredStrategy& strategy) {
                                    const auto trained = trained_under(strategy);
                                    if (strategy.is_chief()) wanted = trained;
                                    EXPECT_EQ(strategy.sums_text(), "");
                                  },
                                  {.seed = 3, .devices = testing::devices(replicas())}),
              Each(""));
  std::vector<std::vector<float>> found(kWorkers);
  EXPECT_THAT(on_gpus([&](int rank, InSyncStrategy& strategy) {
                found[static_cast<std::size_t>(rank)] = trained_under(strategy);
                EXPECT_EQ(strategy.sums_text(),
                          "replicas' values are summed on their GPUs, by fake drivers");
              }),
              Each(""));
  EXPECT_THAT(found[0], Pointwise(FloatNear(1e-6f), wanted));
  EXPECT_EQ(found[0], found[1]);
}

// A gradient, and what it makes of the variable, stay on the GPU.
TEST_P(OnGpus, AStepCopiesNoGradient) {
  constexpr std::int64_t kElements = 4096;
  EXPECT_THAT(on_gpus(
                  [&](int rank, InSyncStrategy& strategy) {
                    auto scope = strategy.scope();
                    Variable w = strategy.create_variable({.name = "w", .shape = {kElements}});
                    nn::SGD optimizer({.learning_rate = 0.1f});
                    Function step = strategy.function(
                        [&](Array x) { optimizer.minimize(sum(square(w.read() - x))); });
                    for (int i = 0; i < 3; ++i) strategy.run(step, {1.0f});
                    testing::FakeDriver& driver = gpus_[static_cast<std::size_t>(rank)]->driver(0);
                    const std::size_t before = driver.counts().bytes_copied;
                    strategy.run(step, {1.0f});
                    EXPECT_LT(driver.counts().bytes_copied - before, kElements);
                  },
                  false),
              Each(""));
}

// The last replica of all fails when its device has the sum, while the others' still sum: they wait
// alone on the device, and find the reason in the group of workers.
TEST_P(OnGpus, AWorkerThatFailsWhileDevicesSumEndsTheWaitOfTheOthers) {
  gpus_[0]->driver(0).hold_sums();
  EXPECT_THAT(on_gpus([&](int rank, InSyncStrategy& strategy) {
                Function step = strategy.function([&](Array x) {
                  const Array total = get_replica_context().all_reduce(ReduceOp::kSum, x);
                  const bool last = get_replica_context().replica_id_in_sync_group() ==
                                    strategy.num_replicas_in_sync() - 1;
                  return last ? check_numerics(log(total), "the value") : log(total);
                });
                const std::string error = message_of([&] { strategy.run(step, {-1.0f}); });
                EXPECT_THAT(error, HasSubstr("the value is nan"));
                if (rank == 0) {
                  EXPECT_THAT(error, AllOf(HasSubstr("gave up"), HasSubstr("start the program")));
                }
                EXPECT_THAT(message_of([&] { strategy.run(step, {1.0f}); }),
                            HasSubstr("Unavailable"));
              }),
              Each(""));
}

}  // namespace
}  // namespace cairn
