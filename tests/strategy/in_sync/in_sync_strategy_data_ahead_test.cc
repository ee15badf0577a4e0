// Elements of the next step are read, and sent to the step's device, while a step computes there;
// nothing else about the data is different.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "core/exec/local_runtime.h"
#include "core/graph/ops.h"
#include "strategy/base/device_names.h"
#include "strategy/base/local_strategy.h"
#include "strategy/in_sync/in_sync_strategy.h"
#include "strategy/in_sync/replica_runtime.h"
#include "tests/core/fake_device.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ids = std::vector<std::int64_t>;

struct OnFakeDevice : LocalStrategy {
  explicit OnFakeDevice(Device& device)
      : LocalStrategy(std::make_unique<LocalRuntime>(7), device) {}
};

struct DataAhead : ::testing::Test {
  testing::FakeDevice device;
  std::unique_ptr<OnFakeDevice> strategy = std::make_unique<OnFakeDevice>(device);
  int made = 0;  // elements of generated(), so far

  std::shared_ptr<const IteratorSource> iterated(const Dataset& dataset,
                                                 const InputOptions& options = {}) {
    return strategy->iterate(strategy->experimental_distribute_dataset(dataset, options));
  }
  // 0, 1, 2, ...; the element `bad` cannot be made.
  Dataset generated(std::int64_t bad = -1) {
    return Dataset::from_generator(
        [this, bad] {
          return [this, bad, i = std::int64_t{0}]() mutable -> std::optional<Element> {
            ++made;
            if (i == bad) throw InvalidArgumentError("no such element");
            return Element{Tensor::scalar(i++)};
          };
        },
        {{{"value", {DType::kInt64, {}}}}, ""});
  }
  // The elements of one step, doubled: the device computed the double.
  Ids step(const std::shared_ptr<const IteratorSource>& data, int elements = 1) {
    Function run = strategy->function([elements](Iterator input) {
      std::vector<Array> values;
      for (int i = 0; i < elements; ++i)
        values.push_back(input.get_next().features["value"] * std::int64_t{2});
      return stack(values, 0);
    });
    const auto ids = strategy->experimental_local_results(strategy->run(run, {data})[0]);
    const auto values = ids[0].values<std::int64_t>();
    return {values.begin(), values.end()};
  }
};

TEST_F(DataAhead, AStepFindsItsElementOnTheDevice) {
  const auto data = iterated(Dataset::range(10));
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_THAT(step(data), ElementsAre(2 * i));
  EXPECT_EQ(device.counts().sent_ahead, 4);
  EXPECT_EQ(device.counts().found_ahead, 3);  // the first was asked for
}

TEST_F(DataAhead, AStepOfSeveralElementsFindsAllOfThem) {
  const auto data = iterated(Dataset::range(10));
  EXPECT_THAT(step(data, 3), ElementsAre(0, 2, 4));
  EXPECT_THAT(step(data, 3), ElementsAre(6, 8, 10));
  EXPECT_EQ(device.counts().found_ahead, 3);
  EXPECT_THAT(step(data, 1), ElementsAre(12));  // fewer than were read
  EXPECT_THAT(step(data, 3), ElementsAre(14, 16, 18));
}

TEST_F(DataAhead, WithoutFetchToDeviceAnElementIsReadByItsStep) {
  const auto data = iterated(generated(), {.experimental_fetch_to_device = false});
  step(data);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(device.counts().sent_ahead, 0);
}

TEST_F(DataAhead, TheDataEndsAtItsEnd) {
  const auto data = iterated(Dataset::range(2));
  EXPECT_THAT(step(data), ElementsAre(0));
  EXPECT_THAT(step(data), ElementsAre(2));
  EXPECT_THROW(step(data), OutOfRangeError);
  EXPECT_THROW(step(data), OutOfRangeError);
}

TEST_F(DataAhead, AnErrorInTheDataIsRaisedByTheStepThatTakesIt) {
  const auto data = iterated(generated(2));
  EXPECT_THAT(step(data), ElementsAre(0));
  EXPECT_THAT(step(data), ElementsAre(2));
  EXPECT_THROW(step(data), InvalidArgumentError);
}

TEST_F(DataAhead, ACheckpointStandsBeforeWhatNoStepHasTaken) {
  tools::TempFolder folder;
  auto data = iterated(Dataset::range(6).shuffle(6, 3));
  Ids all;
  const auto take = [&](int steps) {
    for (int i = 0; i < steps; ++i) all.push_back(step(data).front());
  };
  take(2);
  const std::string checkpoint = strategy->save({.folder = folder.path()});
  take(4);
  const Ids want = std::exchange(all, {});

  data = nullptr;
  strategy = std::make_unique<OnFakeDevice>(device);
  strategy->restore(checkpoint);
  data = iterated(Dataset::range(6).shuffle(6, 3));
  take(4);

  EXPECT_EQ(all, Ids(want.begin() + 2, want.end()));
  EXPECT_THROW(step(data), OutOfRangeError);
}

struct OnTwoFakeDevices : InSyncStrategy {
  explicit OnTwoFakeDevices(std::array<testing::FakeDevice, 2>& devices)
      : InSyncStrategy(std::make_unique<ReplicaRuntime>(7, 2, ReplicaRuntime::Rows::kCopies),
                       {{"fake:0", &devices[0]}, {"fake:1", &devices[1]}}, {}) {}
};

struct ReplicasDataAhead : ::testing::Test {
  std::array<testing::FakeDevice, 2> devices;
  std::unique_ptr<OnTwoFakeDevices> strategy = std::make_unique<OnTwoFakeDevices>(devices);

  // The elements that the replicas took in one step, doubled by their devices.
  std::vector<Ids> step(const DistributedIterator& data) {
    Function run = strategy->function(
        [](Iterator input) { return input.get_next().features["value"] * std::int64_t{2}; });
    std::vector<Ids> all;
    for (const RunValue& own :
         strategy->experimental_local_results(strategy->run(run, {data})[0])) {
      const auto values = own.values<std::int64_t>();
      all.emplace_back(values.begin(), values.end());
    }
    return all;
  }
  DistributedIterator iterated(const Dataset& dataset, const InputOptions& options = {}) {
    return strategy->iterate(strategy->experimental_distribute_dataset(dataset, options));
  }
};

TEST_F(ReplicasDataAhead, EachFindsItsPartOfTheNextBatchOnItsDevice) {
  const auto data = iterated(Dataset::range(10).batch(4));
  EXPECT_THAT(step(data), ElementsAre(ElementsAre(0, 2), ElementsAre(4, 6)));
  EXPECT_THAT(step(data), ElementsAre(ElementsAre(8, 10), ElementsAre(12, 14)));
  EXPECT_THAT(step(data), ElementsAre(ElementsAre(16), ElementsAre(18)));
  for (const auto& device : devices) EXPECT_EQ(device.counts().found_ahead, 2);
  EXPECT_THROW(step(data), OutOfRangeError);
}

TEST_F(ReplicasDataAhead, BatchesThatAreDealtInTurnAreFoundToo) {
  const auto data = strategy->iterate(strategy->distribute_datasets_from_function(
      [](const InputContext&) { return Dataset::range(8).batch(2); }));
  EXPECT_THAT(step(data), ElementsAre(ElementsAre(0, 2), ElementsAre(4, 6)));
  EXPECT_THAT(step(data), ElementsAre(ElementsAre(8, 10), ElementsAre(12, 14)));
  for (const auto& device : devices) EXPECT_EQ(device.counts().found_ahead, 1);
  EXPECT_THROW(step(data), OutOfRangeError);
}

TEST_F(ReplicasDataAhead, WithoutFetchToDeviceEachStepReadsItsOwn) {
  const auto data = iterated(Dataset::range(8).batch(4), {.experimental_fetch_to_device = false});
  step(data);
  for (const auto& device : devices) EXPECT_EQ(device.counts().sent_ahead, 0);
}

TEST_F(ReplicasDataAhead, ACheckpointStandsBeforeWhatNoStepHasTaken) {
  tools::TempFolder folder;
  const Dataset dataset = Dataset::range(24).shuffle(24, 3).batch(4);
  std::string checkpoint;
  std::vector<std::vector<Ids>> want;
  {
    const auto data = iterated(dataset);
    step(data);
    checkpoint = strategy->save({.folder = folder.path()});
    for (int i = 0; i < 5; ++i) want.push_back(step(data));
  }
  strategy = nullptr;
  strategy = std::make_unique<OnTwoFakeDevices>(devices);
  strategy->restore(checkpoint);
  const auto data = iterated(dataset);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(step(data), want[static_cast<std::size_t>(i)]) << i;
}

}  // namespace
}  // namespace cairn
