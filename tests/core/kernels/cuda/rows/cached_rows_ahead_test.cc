// A table behind a cache, under a strategy: rows of the next steps come in while a step computes,
// and nothing is different but that.
#include <gmock/gmock.h>

#include "core/exec/local_runtime.h"
#include "core/graph/custom_gradient.h"
#include "core/graph/ops.h"
#include "core/kernels/cuda/device.h"
#include "strategy/base/local_strategy.h"
#include "tests/core/graph_testing.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"
#include "tests/core/noise.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

constexpr std::int64_t kTableRows = RowLayout::kRowsBeside, kBatchOf = 20;
const UpdateRule kLazyRule{RuleKind::kLazyAdam, {0.9f, 0.99f, 1e-3f}};

struct OnDevice : LocalStrategy {
  explicit OnDevice(Device& device) : LocalStrategy(std::make_unique<LocalRuntime>(7), device) {}
};

// One run of a small job: a table, batches of ids that partly come again, and losses.
struct CachedJob {
  CachedJob(Device& device, const DeviceCache& cache) : strategy(device) {
    strategy.set_device_cache(cache);
    VariableSpec spec;
    spec.name = "table";
    spec.dtype = DType::kFloat32;
    spec.shape = {kTableRows, 4};
    spec.initializer = Initializer::from(testing::noise({kTableRows, 4}, 1));
    table = strategy.create_variable(std::move(spec));
    strategy.add_slots(table, kLazyRule);
    train = strategy.function([this](Iterator input) {
      const Array ids = input.get_next().features["ids"];
      const Array loss = mean(square(table.gather(ids) - 0.3f));
      for (const auto& gradient : variable_gradients(loss))
        gradient.variable.update(kLazyRule, gradient.sparse, 0.1f);
      return loss;
    });
    evaluate = strategy.function([this](Iterator input) {
      return reduce_sum(table.gather(input.get_next().features["ids"]));
    });
  }
  // `batches` of them; the batch `bad` has an id that is out of range.
  std::shared_ptr<const IteratorSource> data(int batches, int bad = -1,
                                             std::int64_t lookups = kBatchOf) {
    return strategy.iterate(Dataset::from_generator(
        [this, batches, bad, lookups] {
          return [this, batches, bad, lookups, i = 0]() mutable -> std::optional<Element> {
            if (i == batches) return std::nullopt;
            ++made;
            // The last one is smaller.
            const std::int64_t count = i + 1 == batches ? lookups / 2 : lookups;
            Tensor ids(DType::kInt64, {count});
            for (std::int64_t k = 0; k < count; ++k)
              ids.mutable_values<std::int64_t>()[static_cast<std::size_t>(k)] =
                  k % 3 == 0 ? k : (k * 7919 + i * 104'729) % kTableRows;
            if (i == bad) ids.mutable_values<std::int64_t>()[5] = kTableRows;
            ++i;
            return Element{ids};
          };
        },
        {{{"ids", {DType::kInt64, {Shape::kUnknown}}}}, ""}));
  }
  float run(Function& function, const std::shared_ptr<const IteratorSource>& from) {
    return strategy.experimental_local_results(strategy.run(function, {from})[0])[0]
        .values<float>()[0];
  }
  std::string rows() {
    const RowBlock block = strategy.store().block(0);
    return {reinterpret_cast<const char*>(block.base),
            static_cast<std::size_t>(block.rows * block.row_stride) * sizeof(float)};
  }

  OnDevice strategy;
  Variable table;
  Function train, evaluate;
  int made = 0;  // batches, so far
};

class CachedAhead : public ::testing::Test {
 protected:
  static DeviceCache cache(int lookahead) {
    DeviceCache made;
    made.bytes = std::size_t{4} * kTableRows + 60'000;
    made.lookahead = lookahead;
    return made;
  }
  testing::FakeDriver driver;
  std::unique_ptr<Device> gpu = cuda::make_device("gpu:0", driver, cpu_device());
};

TEST_F(CachedAhead, StepsHaveTheBitsOfStepsOnAWholeTable) {
  CachedJob whole(*gpu, {});
  const auto reads = whole.data(30);
  std::vector<float> losses;
  for (int i = 0; i < 30; ++i) losses.push_back(whole.run(whole.train, reads));
  for (const int lookahead : {0, 1, 4}) {
    CachedJob cached(*gpu, cache(lookahead));
    const auto data = cached.data(30);
    for (int i = 0; i < 30; ++i) {
      EXPECT_EQ(cached.run(cached.train, data), losses[static_cast<std::size_t>(i)])
          << "step " << i << ", lookahead " << lookahead;
      if (i == 10) {
        EXPECT_EQ(cached.made, 11 + std::max(1, lookahead));
      }
    }
    EXPECT_GT(gpu->figures()->cache_bytes, 0u);
    // A third of a batch's rows come again each time.
    EXPECT_NEAR(gpu->figures()->cache_found.value(), 0.35, 0.1);
    EXPECT_TRUE(cached.rows() == whole.rows()) << "lookahead " << lookahead;
    EXPECT_THROW(cached.run(cached.train, data), OutOfRangeError);
  }
}

// They find rows out of the order for which batches were prepared.
TEST_F(CachedAhead, EvaluationsAndLooksAtTheRowsMayComeInBetween) {
  CachedJob whole(*gpu, {}), cached(*gpu, cache(4));
  const auto a = whole.data(20), b = cached.data(20), test_a = whole.data(20, -1, 3 * kBatchOf),
             test_b = cached.data(20, -1, 3 * kBatchOf);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(cached.run(cached.train, b), whole.run(whole.train, a)) << "step " << i;
    if (i % 3 == 1) {
      EXPECT_EQ(cached.run(cached.evaluate, test_b), whole.run(whole.evaluate, test_a));
    }
    if (i % 5 == 2) {
      EXPECT_TRUE(cached.rows() == whole.rows()) << "step " << i;
    }
    if (i == 7)
      for (CachedJob* job : {&whole, &cached}) {
        Update set{
            0, {RuleKind::kAssign, {}}, 0, testing::ids_of({0, 3}), testing::noise({2, 4}, 9)};
        job->strategy.store().push({}, {&set, 1});
      }
  }
  EXPECT_TRUE(cached.rows() == whole.rows());
}

TEST_F(CachedAhead, AnIdOutOfRangeIsRaisedByTheStepThatTakesIt) {
  CachedJob cached(*gpu, cache(4));
  const auto data = cached.data(12, 6);
  for (int i = 0; i < 6; ++i) EXPECT_NO_THROW(cached.run(cached.train, data)) << "step " << i;
  EXPECT_THAT([&] { cached.run(cached.train, data); },
              ::testing::ThrowsMessage<InvalidArgumentError>(
                  ::testing::HasSubstr("id 16384 at position 5")));
  EXPECT_NO_THROW(cached.run(cached.train, data));
}

// A checkpoint stands before what was read ahead, and has the newest rows.
TEST_F(CachedAhead, ARunThatGoesOnFromACheckpointLearnsTheSame) {
  tools::TempFolder folder;
  const CheckpointPolicy policy{.folder = folder.path()};
  CachedJob whole(*gpu, {});
  const auto all = whole.data(20);
  for (int i = 0; i < 12; ++i) whole.run(whole.train, all);
  CachedJob begun(*gpu, cache(4));
  const auto first = begun.data(20);
  for (int i = 0; i < 6; ++i) begun.run(begun.train, first);
  const std::string saved = begun.strategy.save(policy);
  begun.run(begun.train, first);
  CachedJob resumed(*gpu, cache(4));
  resumed.strategy.restore(saved);
  const auto rest = resumed.data(20);
  for (int i = 6; i < 12; ++i) resumed.run(resumed.train, rest);
  EXPECT_TRUE(resumed.rows() == whole.rows());
}

}  // namespace
}  // namespace cairn
