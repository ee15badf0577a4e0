// Served models predict what LoadedModel does, bit for bit, in whatever batches and threads.
#include "serving/model/served_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "tests/serving/small_requests.h"

namespace cairn::serving::testing {
namespace {

struct ServedModelTest : SmallRequests {};

TEST_F(ServedModelTest, PredictsTheBitsOfALoadedModel) {
  LoadedModel loaded = LoadedModel::load(small.path);
  const auto served = ServedModel::load(small.path, {.threads = 1});
  EXPECT_EQ(served->about().global_step, loaded.about().global_step);
  for (const std::int64_t size : {1, 3, 8, 40}) {
    std::vector<std::vector<Tensor>> got, wanted;
    for (const Element& batch : batches(size)) {
      got.push_back(served->predict(batch, 0));
      wanted.push_back(loaded.predict(batch));
    }
    cairn::testing::expect_equal_bits(got, wanted);
  }
}

TEST_F(ServedModelTest, PredictsTheSameBitsInWhateverBatches) {
  const auto served = ServedModel::load(small.path);
  const std::vector<Tensor> together = served->predict(batches(40).front(), 0);
  std::int64_t row = 0;
  for (const Element& one : batches(1)) {
    const std::vector<Tensor> alone = served->predict(one, 0);
    for (std::size_t o = 0; o < alone.size(); ++o)
      EXPECT_EQ(std::memcmp(alone[o].raw(), together[o].rows(row, row + 1).raw(), alone[o].bytes()),
                0)
          << "example " << row << ", output " << o;
    ++row;
  }
}

TEST_F(ServedModelTest, SeveralThreadsPredictAtOnce) {
  constexpr int kThreads = 4;
  const auto served = ServedModel::load(small.path, {.threads = kThreads});
  const std::vector<Element> all = batches(8);
  std::vector<std::vector<Tensor>> wanted;
  for (const Element& batch : all) wanted.push_back(served->predict(batch, 0));
  std::vector<std::vector<std::vector<Tensor>>> got(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round)
        for (const Element& batch : all)
          got[static_cast<std::size_t>(i)].push_back(served->predict(batch, i));
    });
  for (std::thread& each : threads) each.join();
  for (const auto& of_thread : got)
    for (std::size_t i = 0; i < of_thread.size(); ++i)
      cairn::testing::expect_equal_bits({of_thread[i]}, {wanted[i % all.size()]});
}

TEST_F(ServedModelTest, ANewVersionSharesTheRowsThatTrainingDidNotChange) {
  auto first = ServedModel::load(small.path);
  train_on();
  const auto second = ServedModel::load(small.path, {.before = first});
  EXPECT_GT(second->memory().shared, 0u);
  EXPECT_LT(second->memory().shared, second->memory().bytes);
  LoadedModel loaded = LoadedModel::load(small.path);
  first.reset();
  for (const Element& batch : batches(8))
    cairn::testing::expect_equal_bits({second->predict(batch, 0)}, {loaded.predict(batch)});
}

// A table of more than a megabyte, whose rows all change, and a kernel that is read as a whole.
struct LargeModel {
  tools::TempFolder folder;
  std::string save(std::uint64_t seed) const {
    OneDeviceStrategy strategy{seed};
    const auto scope = strategy.scope();
    const nn::Embedding table({.name = "table", .rows = 70'000, .dim = 4, .seed = seed});
    const nn::Dense kernel({.units = 80'000, .name = "kernel", .seed = seed});
    const Function predict = strategy.function([&](Iterator input) {
      const Array rows = table(input.get_next().features["id"]);
      return Outputs{{"rows", rows}, {"sum", reduce_sum(kernel(rows), {1})}};
    });
    std::string path = str(folder.path(), "/", seed);
    save_model(strategy, predict, {{{"id", {DType::kInt64, {Shape::kUnknown}}}}, ""}, {}, path);
    return path;
  }
};

// A version that a label keeps holds its rows, and with them those of all versions after it.
TEST(ServedModelPools, AKeptVersionDoesNotKeepLaterOnesOut) {
  const LargeModel large;
  const Element ids{Tensor::of<std::int64_t>({3}, std::vector<std::int64_t>{0, 7, 69'999})};
  const std::string first = large.save(1);
  const auto kept = ServedModel::load(first);
  const auto wanted = kept->predict(ids, 0);
  auto newest = kept;
  for (std::uint64_t version = 2; version < 7; ++version) {
    const std::string path = large.save(version);
    newest = ServedModel::load(path, {.before = newest});
    cairn::testing::expect_equal_bits({newest->predict(ids, 0)},
                                      {LoadedModel::load(path).predict(ids)});
  }
  cairn::testing::expect_equal_bits({kept->predict(ids, 0)}, {wanted});
}

TEST(ServedModelPools, WeightsThatAreReadAsAWholeAreNotCopiedAtEveryRun) {
  const LargeModel large;
  const auto before = ServedModel::load(large.save(1));
  const auto same = ServedModel::load(large.save(1), {.before = before});
  const std::size_t table = 70'000 * 4 * sizeof(float);
  EXPECT_EQ(same->memory().shared, table) << "the rows of the table alone";
}

}  // namespace
}  // namespace cairn::serving::testing
