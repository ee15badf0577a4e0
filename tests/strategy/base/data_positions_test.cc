// A program that is started again goes on with the element that the one before would have taken
// next.
#include "strategy/base/data_positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/offload.h"
#include "core/exec/local_runtime.h"
#include "core/graph/ops.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/core/fake_device.h"
#include "tests/strategy/in_sync_kinds.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ids = std::vector<std::int64_t>;
using tools::TempFolder;

struct OneDevice {
  static std::unique_ptr<Strategy> make(int) { return std::make_unique<OneDeviceStrategy>(); }
};

// Elements are read before their step there.
struct DeviceWithMemory {
  struct Owner {
    testing::FakeDevice device;
  };
  struct Made : Owner, LocalStrategy {
    Made() : LocalStrategy(std::make_unique<LocalRuntime>(), device) {}
  };
  static std::unique_ptr<Strategy> make(int) { return std::make_unique<Made>(); }
};

template <typename Kind>
struct DataPositionsOf : ::testing::Test {};
using LocalKinds =
    ::testing::Types<OneDevice, DeviceWithMemory, testing::Mirrored, testing::Central>;
TYPED_TEST_SUITE(DataPositionsOf, LocalKinds);

Dataset shuffled() { return Dataset::range(40).shuffle(40, 7).batch(4).prefetch(2); }

std::shared_ptr<const IteratorSource> iterated(Strategy& strategy, const Dataset& dataset) {
  return strategy.iterate(strategy.experimental_distribute_dataset(dataset));
}

// The elements that the next `steps` steps take, fewer at the end of the data.
Ids taken(Strategy& strategy, const std::shared_ptr<const IteratorSource>& data, int steps = 1000) {
  Function step =
      strategy.function([](Iterator input) { return input.get_next().features["value"]; });
  Ids all;
  try {
    for (int i = 0; i < steps; ++i)
      for (const RunValue& own :
           strategy.experimental_local_results(strategy.run(step, {data})[0])) {
        const auto ids = own.values<std::int64_t>();
        all.insert(all.end(), ids.begin(), ids.end());
      }
  } catch (const OutOfRangeError&) {
  }
  return all;
}

TYPED_TEST(DataPositionsOf, AProgramStartedAgainTakesTheRest) {
  TempFolder folder;
  const auto before = TypeParam::make(2);
  auto data = iterated(*before, shuffled());
  taken(*before, data, 3);
  const std::string checkpoint = before->save({.folder = folder.path()});
  const Ids rest = taken(*before, data);
  ASSERT_EQ(rest.size(), 28u);
  for (const bool made_first : {true, false}) {
    const auto after = TypeParam::make(2);
    std::shared_ptr<const IteratorSource> again;
    if (made_first) {
      again = iterated(*after, shuffled());
      taken(*after, again, 1);
    }
    after->restore(checkpoint);
    if (!made_first) again = iterated(*after, shuffled());
    EXPECT_EQ(taken(*after, again), rest) << made_first;
  }
}

TYPED_TEST(DataPositionsOf, APositionIsThatOfAnyNumberOfReplicas) {
  TempFolder folder;
  const auto before = TypeParam::make(3);
  auto data = iterated(*before, shuffled());
  taken(*before, data, 3);
  const std::string checkpoint = before->save({.folder = folder.path()});
  OneDeviceStrategy one;
  one.restore(checkpoint);
  EXPECT_EQ(taken(one, one.iterate(shuffled())), taken(*before, data));
}

TYPED_TEST(DataPositionsOf, AnIteratorThatHasGoneKeepsItsPlace) {
  TempFolder folder;
  const auto before = TypeParam::make(2);
  taken(*before, iterated(*before, shuffled()));  // an epoch
  auto second = iterated(*before, shuffled());
  taken(*before, second, 4);
  const std::string checkpoint = before->save({.folder = folder.path()});
  const auto after = TypeParam::make(2);
  after->restore(checkpoint);
  EXPECT_THAT(taken(*after, iterated(*after, shuffled())), IsEmpty());
  EXPECT_EQ(taken(*after, iterated(*after, shuffled())), taken(*before, second));
}

TYPED_TEST(DataPositionsOf, AnotherDatasetIsRefusedUnlessItIsToBeNew) {
  TempFolder folder;
  const auto before = TypeParam::make(2);
  auto data = iterated(*before, shuffled());
  taken(*before, data, 3);
  const std::string checkpoint = before->save({.folder = folder.path()});
  const Dataset another = Dataset::range(8).batch(4);
  const auto after = TypeParam::make(2);
  after->restore(checkpoint);
  try {
    iterated(*after, another);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"iterated 0\""));
    EXPECT_THAT(error.what(), HasSubstr("new_data"));
  }
  // one that is there already: nothing is restored
  const auto early = TypeParam::make(2);
  const auto there = iterated(*early, another);
  EXPECT_THROW(early->restore(checkpoint), InvalidArgumentError);
  EXPECT_THAT(taken(*early, there, 1), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(dynamic_cast<LocalStrategy&>(*early).global_step(), 0);
  const auto fresh = TypeParam::make(2);
  fresh->restore(checkpoint, {.new_data = true});
  EXPECT_THAT(taken(*fresh, iterated(*fresh, another)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

// As under parameter servers: what was taken since is not taken twice by one program.
TYPED_TEST(DataPositionsOf, AStrategyThatGoesBackToItsOwnCheckpointGoesOnInItsData) {
  TempFolder folder;
  const auto strategy = TypeParam::make(2);
  auto data = iterated(*strategy, Dataset::range(16).batch(4));
  taken(*strategy, data, 1);
  const std::string checkpoint = strategy->save({.folder = folder.path()});
  taken(*strategy, data, 1);
  strategy->restore(checkpoint);
  EXPECT_THAT(taken(*strategy, data, 1), ElementsAre(8, 9, 10, 11));
}

TEST(DataCursor, TakesWhatAnotherRunLeftOpenFirst) {
  const auto offload = make_inline_offload();
  DataCursor cursor(Dataset::range(10), *offload);
  auto ids = [&](int count) {
    Ids all;
    for (int i = 0; i < count; ++i)
      if (auto element = cursor.next()) all.push_back(element->front().item<std::int64_t>());
    return all;
  };
  cursor.go_to({"", 7, {{5, 1}, {1, 2}}, {{0, {}}}});
  EXPECT_THAT(ids(2), ElementsAre(1, 2));
  const PipelinePosition between = cursor.position();
  EXPECT_EQ(between.next, 7u);
  EXPECT_THAT(ids(5), ElementsAre(5, 7, 8, 9));
  cursor.go_to(between);
  EXPECT_THAT(ids(3), ElementsAre(5, 7, 8));
  EXPECT_EQ(cursor.position().next, 9u);
}

}  // namespace
}  // namespace cairn
