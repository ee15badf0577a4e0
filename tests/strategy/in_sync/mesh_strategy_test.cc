// Logical devices: who gets which, what an annotation changes (nothing), and what it refuses.
#include "strategy/in_sync/mesh_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "core/rows/local_store.h"
#include "nn/nn.h"
#include "tests/strategy/in_sync_kinds.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "it was not refused";
}

MeshStrategy two_by_four() {
  return MeshStrategy(DeviceAssignment::build({.num_replicas = 2, .num_logical_devices = 4}));
}

Tensor ones(const Shape& shape) {
  Tensor made(DType::kFloat32, shape);
  for (float& value : made.mutable_values<float>()) value = 1;
  return made;
}

// ---- which devices a replica has ----

TEST(DeviceAssignment, DealsDevicesOutReplicaByReplica) {
  const auto built = DeviceAssignment::build({.num_replicas = 2, .num_logical_devices = 3});
  EXPECT_EQ(built.num_replicas(), 2);
  EXPECT_EQ(built.num_logical_devices(), 3);
  EXPECT_EQ(built.device(1, 0), "cpu:3");
  EXPECT_THAT(built.devices_of_logical(2), ElementsAre("cpu:2", "cpu:5"));

  const auto named = DeviceAssignment::build({.num_replicas = 2, .devices = {"cpu:7", "/cpu:1"}});
  EXPECT_THAT(named.devices_of_logical(0), ElementsAre("cpu:7", "/cpu:1"));
}

TEST(DeviceAssignment, RefusesWhatNoReplicaCouldRunOnAndSaysWhere) {
  using Lists = std::vector<std::vector<std::string>>;
  auto of = [](Lists lists) { return refusal([&] { DeviceAssignment given(lists); }); };
  EXPECT_THAT(of({}), HasSubstr("no replica"));
  EXPECT_THAT(of({{"cpu:0"}, {}}), AllOf(HasSubstr("replica 1"), HasSubstr("name one")));
  EXPECT_THAT(of({{"cpu:0", "cpu:1"}, {"cpu:2"}}),
              AllOf(HasSubstr("replica 1"), HasSubstr("1 logical"), HasSubstr("replica 0 has 2")));
  EXPECT_THAT(of({{"cpu:0"}, {"tpu:0"}}),
              AllOf(HasSubstr("logical device 0 of replica 1"), HasSubstr("\"tpu:0\""),
                    HasSubstr("there are \"cpu:0\"")));
  EXPECT_THAT(of({{"cpu:0", "cpu:1"}, {"cpu:2", "/device:CPU:1"}}),
              AllOf(HasSubstr("logical device 1 of replica 0"),
                    HasSubstr("logical device 1 of replica 1"), HasSubstr("device of its own")));
  try {
    DeviceAssignment given(Lists{{"cpu:0"}, {"gpu:99"}});
    ADD_FAILURE() << "no machine has a hundred GPUs";
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("logical device 0 of replica 1"), HasSubstr("no device gpu:99: ")));
  }
}

TEST(DeviceAssignment, RefusesAGridThatDoesNotComeOut) {
  auto of = [](DeviceGrid grid) { return refusal([&] { DeviceAssignment::build(grid); }); };
  EXPECT_THAT(of({.num_replicas = 0}), HasSubstr("1 at least"));
  EXPECT_THAT(of({.num_replicas = 2, .num_logical_devices = 2, .devices = {"cpu:0"}}),
              AllOf(HasSubstr("needs 4 devices"), HasSubstr("1 are named")));
  EXPECT_THAT(of({.num_replicas = 40, .num_logical_devices = 2}), HasSubstr("needs 80 devices"));
  const auto built = DeviceAssignment::build({});
  EXPECT_THAT(refusal([&] { built.device(0, 1); }), HasSubstr("no logical device 1 of replica 0"));
  EXPECT_THAT(refusal([&] { built.device(1, 0); }), HasSubstr("of replica 1"));
}

// ---- annotations ----

TEST(MeshStrategy, AnAnnotationGivesItsValueBackOnEveryReplica) {
  MeshStrategy strategy = two_by_four();
  EXPECT_EQ(strategy.num_replicas_in_sync(), 2);
  EXPECT_EQ(strategy.num_logical_devices(), 4);
  Function step = strategy.function([&](Array x) {
    x = x * cast(get_replica_context().replica_id_in_sync_group() + 1, DType::kFloat32);
    const Array assigned = strategy.experimental_assign_to_logical_device(x, 3);
    const Array split = strategy.experimental_split_to_logical_devices(assigned, {2, 2});
    return strategy.experimental_replicate_to_logical_devices(split);
  });
  const RunResult result = strategy.run(step, {ones({2, 4})});
  const auto own = strategy.experimental_local_results(result[0]);
  for (int replica = 0; replica < 2; ++replica) {
    const Tensor& value = own[static_cast<std::size_t>(replica)].tensor();
    EXPECT_EQ(value.shape(), (Shape{2, 4}));
    EXPECT_THAT(value.values<float>(), ::testing::Each(static_cast<float>(replica + 1)));
  }
}

TEST(MeshStrategy, AssignRefusesADeviceThatNoReplicaHas) {
  MeshStrategy strategy = two_by_four();
  for (int device : {-1, 4})
    EXPECT_THAT(
        refusal([&] { strategy.experimental_assign_to_logical_device(1.0f, device); }),
        AllOf(HasSubstr(str("no logical device ", device)), HasSubstr("each replica has 4")));
  strategy.experimental_assign_to_logical_device(1.0f, 0);
}

TEST(MeshStrategy, SplitRefusesPiecesThatAreNotEqualOrNotOnePerDevice) {
  MeshStrategy strategy = two_by_four();
  const Array value = ones({4, 6});
  auto of = [&](std::vector<std::int64_t> parts) {
    return refusal([&] { strategy.experimental_split_to_logical_devices(value, parts); });
  };
  EXPECT_THAT(of({4}), AllOf(HasSubstr("[4] is 1"), HasSubstr("2 axes")));
  EXPECT_THAT(of({1, 4}), AllOf(HasSubstr("axis 1"), HasSubstr("divides 6")));
  EXPECT_THAT(of({2, 1}), AllOf(HasSubstr("[2, 1]"), HasSubstr("of a replica, 4")));
  EXPECT_THAT(of({4, 0}), AllOf(HasSubstr("axis 1"), HasSubstr("0 pieces")));
  EXPECT_THAT(of({-2, -2}), HasSubstr("-2 pieces"));
  strategy.experimental_split_to_logical_devices(value, {4, 1});
  strategy.experimental_split_to_logical_devices(value, {2, 2});
}

TEST(MeshStrategy, SplitRefusesMorePiecesThanANumberCanSay) {
  MeshStrategy strategy = two_by_four();
  const std::int64_t many = std::int64_t{1} << 33;
  EXPECT_THAT(refusal([&] {
                strategy.experimental_split_to_logical_devices(ones({0, 0}), {many, many});
              }),
              HasSubstr("of a replica, 4"));
}

// A batch of the function's iterator may be short: its size is known when it is there.
TEST(MeshStrategy, SplitAsksNothingOfASizeThatIsUnknownWhenTraced) {
  MeshStrategy strategy = two_by_four();
  Function step = strategy.function([&](Iterator batches) {
    const Array batch = batches.get_next().features["value"];
    EXPECT_EQ(batch.shape()[0], Shape::kUnknown);
    return reduce_sum(strategy.experimental_split_to_logical_devices(batch, {4}));
  });
  const auto batches =
      strategy.iterate(strategy.experimental_distribute_dataset(Dataset::range(6).batch(6)));
  EXPECT_EQ(strategy.reduce(ReduceOp::kSum, strategy.run(step, {batches})[0]).item<std::int64_t>(),
            15);
}

TEST(MeshStrategy, AValuePerReplicaIsAnnotatedOnTheReplicas) {
  MeshStrategy strategy = two_by_four();
  const PerReplica values(std::vector<Array>{1.0f, 2.0f});
  EXPECT_THAT(refusal([&] { strategy.experimental_replicate_to_logical_devices(values); }),
              HasSubstr("in a function that the strategy's run() runs"));
}

// ---- all else is MirroredStrategy's ----

std::vector<float> weights_after_training(Strategy& strategy,
                                          const std::function<Array(Array)>& annotated) {
  auto scope = strategy.scope();
  Variable w = strategy.create_variable(
      {.name = "w", .shape = {3, 2}, .initializer = Initializer::uniform(-1, 1, 5)});
  nn::Adam optimizer({.learning_rate = 0.1f});
  Function step = strategy.function([&](Array x) {
    const Array loss = reduce_mean(square(matmul(annotated(x), w.read())));
    optimizer.minimize(loss);
    return loss;
  });
  const PerReplica batches(std::vector<Array>{ones({4, 3}), ones({4, 3}) * Array(0.5f)});
  for (int i = 0; i < 3; ++i) strategy.run(step, {batches});
  const Tensor value = w.read().eval();
  return {value.values<float>().begin(), value.values<float>().end()};
}

TEST(MeshStrategy, TrainsAsMirroredStrategyDoesBitForBit) {
  MeshStrategy mesh = two_by_four();
  MirroredStrategy mirrored(testing::logical_cpus(2));
  const auto of_mirrored = weights_after_training(mirrored, [](Array x) { return x; });
  EXPECT_EQ(weights_after_training(mesh,
                                   [&](Array x) {
                                     return mesh.experimental_split_to_logical_devices(x, {4, 1});
                                   }),
            of_mirrored);
}

}  // namespace
}  // namespace cairn
