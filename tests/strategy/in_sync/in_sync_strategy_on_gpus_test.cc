// Replicas of one process on two fake GPUs (tests/core/kernels/cuda/runtime/fake_library.cc), which
// sum what the replicas reduce.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "strategy/in_sync/central_storage_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Names = std::vector<std::string>;

// Before anything asks for a GPU.
struct FakeGpus : ::testing::Environment {
  FakeGpus() {
    ::setenv("CAIRN_CUDA_LIBRARY", CAIRN_FAKES "/libcairn_fake_gpu.so", 1);
    ::setenv("CAIRN_FAKE_GPUS", "2", 1);
  }
};
const ::testing::Environment* const kFakeGpus =
    ::testing::AddGlobalTestEnvironment(new FakeGpus);  // gtest deletes it

const Names kTwoGpus = {"gpu:0", "gpu:1"}, kOneGpu = {"gpu:0", "gpu:0"}, kCpus = {"cpu:0", "cpu:1"};
constexpr const char* kThere = "replicas' values are summed on their GPUs, by fake drivers";

std::vector<float> floats_of(const Variable& variable) {
  const Tensor value = variable.read().eval();
  const auto values = value.values<float>();
  return {values.begin(), values.end()};
}

// A layer and a table, whose gradient is sparse, and a scalar; each replica has examples of its
// own.
struct Model {
  explicit Model(Strategy& strategy)
      : w(strategy.create_variable(
            {.name = "w", .shape = {3, 4}, .initializer = Initializer::uniform(-1, 1)})),
        table(strategy.create_variable(
            {.name = "table", .shape = {9, 3}, .initializer = Initializer::uniform(-1, 1)})),
        bias(strategy.create_variable({.name = "bias", .shape = {}})) {}
  Array loss(const Array& ids) const {
    return mean(square(matmul(table.gather(ids), w.read()) + bias.read() - 1.0f));
  }
  std::vector<float> trained() const {
    std::vector<float> all;
    for (const Variable& each : {w, table, bias}) {
      const auto own = floats_of(each);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  Variable w, table, bias;
};

PerReplica ids_of_two() {
  const auto ids = [](std::vector<std::int64_t> values) {
    return Array(Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
  };
  return PerReplica(std::vector<Array>{ids({1, 4, 1}), ids({4, 7, 8})});
}

std::vector<float> trained_under(InSyncStrategy& strategy) {
  auto scope = strategy.scope();
  Model model(strategy);
  nn::SGD optimizer({.learning_rate = 0.1f, .momentum = 0.9f});
  Function step = strategy.function([&](Array ids) { optimizer.minimize(model.loss(ids) / 2.0f); });
  for (int i = 0; i < 5; ++i) strategy.run(step, {ids_of_two()});
  return model.trained();
}

template <typename Kind>
struct OnGpus : ::testing::Test {
  static std::unique_ptr<InSyncStrategy> make(const Names& devices) {
    const InSyncOptions options{.seed = 3, .check_replicas = true};
    if constexpr (std::is_same_v<Kind, MirroredStrategy>)
      return std::make_unique<MirroredStrategy>(devices, options);
    else
      return std::make_unique<CentralStorageStrategy>(devices, "", options);
  }
};
using Kinds = ::testing::Types<MirroredStrategy, CentralStorageStrategy>;
TYPED_TEST_SUITE(OnGpus, Kinds);

TYPED_TEST(OnGpus, ReplicasLearnWhatTheyLearnOnTheCpuWhereverTheirValuesMeet) {
  const auto wanted = trained_under(*this->make(kCpus));
  const auto two = this->make(kTwoGpus), one = this->make(kOneGpu);
  EXPECT_THAT(trained_under(*two), Pointwise(FloatNear(1e-6f), wanted));
  EXPECT_EQ(two->sums_text(), kThere);
  EXPECT_THAT(trained_under(*one), Pointwise(FloatNear(1e-6f), wanted));
  EXPECT_EQ(one->sums_text(),
            "replicas' values are summed in the host's memory: replicas share gpu:0");
  EXPECT_EQ(this->make(kCpus)->sums_text(), "");
}

TEST(ReplicasOnGpus, GoOnAfterAStepThatOneOfThemFailed) {
  MirroredStrategy strategy(kTwoGpus, {.seed = 3, .check_replicas = true});
  auto scope = strategy.scope();
  Variable w = strategy.create_variable({.name = "w", .shape = {7}});
  Function step = strategy.function([&](Array x) {
    w.assign_add(check_numerics(log(x), "the value") *
                 Array(Tensor::of<float>({7}, std::vector<float>(7, 1))));
  });
  const auto run = [&](float first, float second) {
    strategy.run(step, {PerReplica(std::vector<Array>{first, second})});
  };
  const float e = std::exp(1.0f);
  run(e, e);
  const auto before = floats_of(w);
  for (int i = 0; i < 3; ++i) {
    try {
      run(e, -1.0f);
      ADD_FAILURE() << "the value of replica 1 is not finite";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr("the value is nan"));
    }
    EXPECT_EQ(floats_of(w), before);
  }
  run(e, e);
  EXPECT_NEAR(floats_of(w)[6], 2 * before[6], 1e-5f);
}

TEST(ReplicasOnGpus, SumThereUnlessTheProgramHasThemMeetInAnotherWay) {
  MirroredStrategy ring(kTwoGpus, "Ring", {.seed = 3}),
      devices(kTwoGpus, "NcclAllReduce", {.seed = 3});
  EXPECT_THAT(trained_under(ring), Pointwise(FloatNear(1e-6f), trained_under(devices)));
  EXPECT_EQ(devices.sums_text(), kThere);
  EXPECT_THAT(ring.sums_text(), HasSubstr("in the host's memory"));
}

TEST(ReplicasOnGpus, ThatShareOneAreRefusedWhereTheProgramWantsNccl) {
  try {
    MirroredStrategy(kOneGpu, "NcclAllReduce");
    ADD_FAILURE() << "two replicas are on gpu:0";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("NcclAllReduce"), HasSubstr("share gpu:0")));
  }
}

}  // namespace
}  // namespace cairn
