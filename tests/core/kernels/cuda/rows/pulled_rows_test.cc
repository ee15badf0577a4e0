// Rows that come from a store which lends nothing, as a parameter server does: the device is dealt
// each row once, and gives the sum of each row's gradients.
#include <cstring>
#include <limits>

#include "tests/core/kernels/cuda/rows/device_rows_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's

class LendsNothing final : public VariableStore {
 public:
  explicit LendsNothing(LocalStore& rows) : rows_(rows) {}
  void pull(const StepContext& step, std::span<Read> reads) override { rows_.pull(step, reads); }
  void push(const StepContext& step, std::span<Update> updates) override {
    rows_.push(step, updates);
  }

 private:
  LocalStore& rows_;
};

struct PulledRows : DeviceRowsTest {
  LendsNothing store{device.store};

  std::vector<Tensor> run_on_device(const std::shared_ptr<const Plan>& plan,
                                    const std::vector<Tensor>& arguments) {
    return run(plan, device.workspace, store, {}, arguments, {});
  }
  // One step on both sides.
  void train(const std::shared_ptr<const Plan>& plan, const std::vector<Tensor>& arguments) {
    const auto want = run(plan, host.workspace, host.store, {}, arguments, {}),
               got = run_on_device(plan, arguments);
    for (std::size_t i = 0; i < want.size(); ++i) expect_near(got[i], want[i], str("output ", i));
  }
};

void update_all(const Array& loss, const UpdateRule& rule) {
  for (const auto& gradient : variable_gradients(loss))
    if (gradient.is_sparse())
      gradient.variable.update(rule, gradient.sparse, 0.1f);
    else
      gradient.variable.update(rule, gradient.dense, 0.1f);
}

// The number of distinct ids is another one in each step; one table is looked up twice, and one id
// stands for most of the batch.
TEST_F(PulledRows, TrainAsOnTheHost) {
  const UpdateRule adam{RuleKind::kLazyAdam, {0.9f, 0.99f, 1e-3f}};
  const Variable first = variable("first", noise({50, 8}, 1), adam),
                 second = variable("second", noise({7, 8}, 2), adam),
                 wide = variable("wide", noise({50, 1}, 3), adam),
                 layer = variable("layer", noise({8, 8}, 4), adam);
  const auto step = trace_function({ints({kAny}), ints({kAny}), ints({kAny})}, [&](auto& in) {
    const Array a = arg(in, 0), b = arg(in, 1);
    const Array rows = stack({first.gather(a), first.gather(b), second.gather(arg(in, 2))}, 1);
    const Array out = matmul(reduce_sum(rows, {1}), layer.read()) + wide.gather(a);
    const Array loss = mean(square(out - 1.0f));
    update_all(loss, adam);
    return std::vector<Array>{loss};
  });
  const auto plan = plan_of(step);
  for (std::int64_t i = 0; i < 6; ++i) {
    std::vector<std::int64_t> a, b, c;
    for (std::int64_t k = 0; k < 300; ++k) {
      a.push_back(k % 3 == 0 ? (k * k + i) % 50 : 4);
      b.push_back((k * (i + 1)) % 50);
      c.push_back(b.back() % 7);
    }
    train(plan, {ids_of(a), ids_of(b), ids_of(c)});
  }
  expect_equal_stores();
}

#ifndef CAIRN_ON_GPU
// Five rows of 256 bytes and as many sums; each id's place, and the ids of the gradient once.
TEST_F(PulledRows, EachRowTravelsOnceEachWay) {
  const Variable table = variable("table", noise({1000, 64}, 1), kSgd);
  const auto step = trace_function({ints({kAny})}, [&](auto& in) {
    const Array loss = mean(square(table.gather(arg(in, 0))));
    update_all(loss, kSgd);
    return std::vector<Array>{loss};
  });
  const auto plan = plan_of(step);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 400; ++i) ids.push_back(100 * (i % 5));
  train(plan, {ids_of(ids)});
  const std::size_t before = driver.counts().bytes_copied;
  train(plan, {ids_of(ids)});
  EXPECT_LT(driver.counts().bytes_copied - before, 10'000u);  // of 400 rows it would be 204,800
  expect_equal_stores();
}

TEST_F(PulledRows, AWarmStepWaitsOncePerWaveAndAllocatesNothing) {
  const Variable table = variable("table", noise({50, 8}, 1), kSgd),
                 other = variable("other", noise({50, 8}, 2), kSgd);
  const auto step = trace_function({ints({kAny})}, [&](auto& in) {
    const Array loss = mean(square(table.gather(arg(in, 0)) * other.gather(arg(in, 0))));
    update_all(loss, kSgd);
    return std::vector<Array>{};
  });
  const auto plan = plan_of(step);
  run_on_device(plan, {ids_of({1, 2, 1})});
  const auto before = driver.counts();
  run_on_device(plan, {ids_of({4, 9, 7})});
  EXPECT_EQ(driver.counts().allocations, before.allocations);
  EXPECT_EQ(driver.counts().waits, before.waits + 1);
}
#endif

// The host makes updates whose rows are no sums of gradients, or whose numbers are no floats.
TEST_F(PulledRows, OtherUpdatesAreMadeByTheHost) {
  const Variable table = variable("table", noise({9, 4}, 1), kSgd),
                 counts = variable("counts", Tensor::zeros(DType::kInt32, {9, 1}), {});
  const auto step = trace_function({ints({3}), floats({3, 4})}, [&](auto& in) {
    const Array rows = table.gather(arg(in, 0));
    const Array seen = counts.gather(arg(in, 0));
    table.scatter_update(arg(in, 0), rows + arg(in, 1));
    counts.scatter_add(arg(in, 0), ones_like(seen));
    return std::vector<Array>{};
  });
  const auto plan = plan_of(step);
  for (int i = 0; i < 3; ++i) train(plan, {ids_of({2, 5, i}), noise({3, 4}, 5 + i)});
  expect_near(read(device, 0), read(host, 0), "table");
  EXPECT_EQ(std::memcmp(read(device, 1).raw(), read(host, 1).raw(), 9 * sizeof(std::int32_t)), 0);
}

// A check that fails stops what depends on it, and the sums with it.
TEST_F(PulledRows, ACheckThatFailsLeavesTheRowsAsTheyWere) {
  const Variable table = variable("table", noise({9, 4}, 1), kSgd);
  const auto step = trace_function({ints({3}), floats({3, 4})}, [&](auto& in) {
    const Array loss =
        check_numerics(mean(square(table.gather(arg(in, 0)) * arg(in, 1))), "the loss");
    update_all(loss, kSgd);
    return std::vector<Array>{};
  });
  const auto plan = plan_of(step);
  Tensor wrong = noise({3, 4}, 2);
  wrong.mutable_values<float>()[5] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(run_on_device(plan, {ids_of({1, 2, 1}), wrong}), InvalidArgumentError);
  expect_equal_stores();
  train(plan, {ids_of({1, 2, 1}), noise({3, 4}, 3)});
  expect_equal_stores();
}

}  // namespace
}  // namespace cairn
