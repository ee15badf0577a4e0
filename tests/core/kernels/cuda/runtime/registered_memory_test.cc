// Rows that a store lays into memory registered with the device, and gradients that it wants there,
// as a worker's store of rows on a ps of its host does: they travel without a detour.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/kernels/cuda/runtime/queue.h"
#include "tests/core/kernels/cuda/rows/device_rows_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's

// Places in one piece of memory. One that is let go of is written to at once, as by
// its next owner.
class Places {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  Places() = default;
  ~Places() { std::free(memory_); }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;
  std::byte* data() const { return memory_; }
  std::shared_ptr<std::byte> take(std::size_t bytes) {
    std::byte* const at = memory_ + used_;
    used_ += (bytes + 63) / 64 * 64;
    CAIRN_CHECK(used_ <= kBytes, "the test needs more places");
    return {at, [bytes](std::byte* place) { std::memset(place, 0xee, bytes); }};
  }

 private:
  std::byte* const memory_ = static_cast<std::byte*>(std::aligned_alloc(4096, kBytes));
  std::size_t used_ = 0;
};

class LaysIntoPlaces final : public VariableStore {
 public:
  LaysIntoPlaces(LocalStore& rows, Places& places) : rows_(rows), places_(places) {}
  void pull(const StepContext& step, std::span<Read> reads) override {
    rows_.pull(step, reads);
    for (Read& read : reads) {
      auto place = places_.take(read.value.bytes());
      std::byte* const at = place.get();
      std::memcpy(at, read.value.raw(), read.value.bytes());
      read.value = Tensor::borrowed(read.value.dtype(), read.value.shape(), at, std::move(place));
    }
  }
  void push(const StepContext& step, std::span<Update> updates) override {
    rows_.push(step, updates);
  }
  std::shared_ptr<std::byte> update_place(VariableId, std::size_t bytes) override {
    if (--places_left == 0) throw UnavailableError("the connection was lost");
    return places_.take(bytes);
  }

  int places_left = std::numeric_limits<int>::max();  // then update_place() fails

 private:
  LocalStore& rows_;
  Places& places_;
};

struct RegisteredMemory : DeviceRowsTest {
  Places places;
  std::shared_ptr<void> registered = gpu->register_host(places.data(), Places::kBytes);
  LaysIntoPlaces store{device.store, places};
  Variable first, second, layer;
  std::shared_ptr<const Plan> plan;

  RegisteredMemory()
      : first(variable("first", noise({50, 8}, 1), kSgd)),
        second(variable("second", noise({70, 8}, 2), kSgd)),
        layer(variable("layer", noise({8, 8}, 3), kSgd)) {
    plan = plan_of(trace_function({ints({3}), floats({3, 8})}, [&](auto& in) {
      const Array ids = arg(in, 0);
      const Array rows = first.gather(ids) * second.gather(ids) * arg(in, 1);
      const Array loss = check_numerics(mean(square(matmul(rows, layer.read()) - 1.0f)), "loss");
      for (const auto& gradient : variable_gradients(loss))
        if (gradient.is_sparse())
          gradient.variable.update(kSgd, gradient.sparse, 0.1f);
        else
          gradient.variable.update(kSgd, gradient.dense, 0.1f);
      return std::vector<Array>{loss};
    }));
  }
  std::vector<Tensor> run_on_device(const std::vector<Tensor>& arguments) {
    return run(plan, device.workspace, store, {}, arguments, {});
  }
  void give_up(Workspace& workspace) {
    store.places_left = 2;
    EXPECT_THROW(run(plan, workspace, store, {}, {ids_of({4, 2, 7}), noise({3, 8}, 3)}, {}),
                 UnavailableError);
    store.places_left = std::numeric_limits<int>::max();
  }
  // One step on both sides.
  void train(const std::vector<Tensor>& arguments) {
    const auto want = run(plan, host.workspace, host.store, {}, arguments, {}),
               got = run_on_device(arguments);
    expect_near(got[0], want[0], "the loss");
    expect_equal_stores();
  }
};

TEST_F(RegisteredMemory, RowsAndGradientsTravelStraight) {
  for (int i = 0; i < 4; ++i) train({ids_of({3, 9 + i, 3}), noise({3, 8}, 10 + i)});
#ifndef CAIRN_ON_GPU
  const auto before = driver.counts();
  train({ids_of({3, 9, 3}), noise({3, 8}, 20)});
  // Each way two rows of 32 bytes of each table, and the layer.
  EXPECT_EQ(driver.counts().bytes_straight - before.bytes_straight, 2u * (2 * 2 * 32 + 8 * 32));
  EXPECT_EQ(driver.counts().waits, before.waits + 1);
  EXPECT_EQ(driver.counts().allocations, before.allocations);
#endif
}

TEST_F(RegisteredMemory, ACheckThatFailsLeavesTheRowsAsTheyWere) {
  Tensor wrong = noise({3, 8}, 2);
  wrong.mutable_values<float>()[5] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(run_on_device({ids_of({1, 2, 1}), wrong}), InvalidArgumentError);
  expect_equal_stores();
  train({ids_of({1, 2, 1}), noise({3, 8}, 3)});
}

// Rows are still read, and gradients still written, when the step is given up: their places are not
// let go of before the device is past them.
TEST_F(RegisteredMemory, AStepThatIsGivenUpHoldsItsPlacesUntilTheDeviceIsPastThem) {
  train({ids_of({1, 2, 1}), noise({3, 8}, 2)});
  give_up(device.workspace);
  train({ids_of({4, 2, 7}), noise({3, 8}, 4)});
  Workspace other(*gpu);
  give_up(other);
}

#ifndef CAIRN_ON_GPU
TEST_F(RegisteredMemory, IsPinnedOnceForAllWhoRegisterIt) {
  auto again = gpu->open()->register_host(places.data(), Places::kBytes);
  EXPECT_EQ(driver.counts().pins, 1);
  registered = nullptr;
  EXPECT_EQ(driver.host_ranges().bytes(), Places::kBytes);
  again = nullptr;
  EXPECT_EQ(driver.host_ranges().bytes(), 0u);
}

TEST_F(RegisteredMemory, ThatIsNotRegisteredAnyMoreIsCopiedByWayOfBlocks) {
  train({ids_of({1, 2, 1}), noise({3, 8}, 2)});
  registered = nullptr;
  const std::size_t before = driver.counts().bytes_straight;
  train({ids_of({1, 2, 1}), noise({3, 8}, 3)});
  EXPECT_EQ(driver.counts().bytes_straight, before);
}

TEST_F(RegisteredMemory, WhichTheSystemDoesNotPinIsRefused) {
  registered = nullptr;
  driver.refuse_pins();
  EXPECT_THROW(gpu->register_host(places.data(), Places::kBytes), ResourceExhaustedError);
  train({ids_of({1, 2, 1}), noise({3, 8}, 2)});
  EXPECT_EQ(driver.counts().bytes_straight, 0u);
}

// The host waits for none of many copies: the queue does at some time, and drops their keepers.
TEST_F(RegisteredMemory, KeepersOfCopiesThatNobodyWaitsForAreBounded) {
  cuda::Queue queue(driver, cpu_device());
  const auto memory = queue.memory(64);
  std::vector<std::weak_ptr<std::byte>> all;
  for (int i = 0; i < 3000; ++i) {
    const std::shared_ptr<std::byte> place = places.take(64);
    std::memset(place.get(), i % 100, 64);
    all.push_back(place);
    queue.copy_in(memory->data(), place.get(), 64, place);
  }
  const auto kept = std::ranges::count_if(all, [](const auto& one) { return !one.expired(); });
  EXPECT_GT(kept, 0);
  EXPECT_LE(kept, 1024);
  queue.wait();
  EXPECT_TRUE(std::ranges::all_of(all, [](const auto& one) { return one.expired(); }));
}
#endif

}  // namespace
}  // namespace cairn
