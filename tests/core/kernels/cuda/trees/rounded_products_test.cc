// Matrix products in bfloat16 on a device: what is rounded, how often, and for how long it is good.
#include "tests/core/kernels/cuda/rows/device_rows_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's

using RoundedProducts = DeviceRowsTest;

// The input, the two layers and the gradient between them, each once; not three times two layers.
TEST_F(RoundedProducts, WhatSeveralProductsReadIsRoundedOnce) {
  const Variable first = variable("first", noise({4, 4}, 1), kSgd),
                 second = variable("second", noise({4, 4}, 2), kSgd);
  const auto step = trace_function({floats({2, 4})}, [&](auto& in) {
    const Array h = relu(matmul(arg(in, 0), first.read()));
    const Array loss = mean(square(matmul(h, second.read())));
    for (const auto& gradient : variable_gradients(loss))
      gradient.variable.update(kSgd, gradient.dense, 0.1f);
    return std::vector<Array>{loss};
  });
  PlanOptions options;
  options.products = Arithmetic::kBfloat16;
  const auto plan = make_plan(step.graph, {0, 1}, options);
  for (int i = 0; i < 4; ++i) {
    const auto want = run(plan, host.workspace, host.store, {}, {noise({2, 4}, 3 + i)}, {}),
               got = run(plan, device.workspace, device.store, {}, {noise({2, 4}, 3 + i)}, {});
    EXPECT_NEAR(got[0].values<float>()[0], want[0].values<float>()[0], 1e-3f);
    // x, first, h, second, the gradient of the result, that of h
    if (kCounted) {
      EXPECT_EQ(driver.counts().narrowed, 6 * (i + 1));
    }
  }
}

// Each run looks up other rows to the same place. A check keeps runs from being recorded.
TEST_F(RoundedProducts, ProductsOfLookedUpRowsSeeThoseOfTheirOwnRun) {
  const Variable table = variable("table", noise({9, 4}, 1), kSgd),
                 layer = variable("layer", noise({4, 3}, 2), kSgd);
  const auto step = trace_function({ints({kAny})}, [&](auto& in) {
    const Array out = matmul(table.gather(arg(in, 0)), layer.read());
    return std::vector<Array>{check_numerics(mean(square(out)), "the loss")};
  });
  PlanOptions options;
  options.products = Arithmetic::kBfloat16;
  const auto plan = plan_of(step, options);
  for (int i = 0; i < 4; ++i) {
    const std::vector<Tensor> ids = {ids_of({i, i + 1, 2 * i})};
    const auto want = run(plan, host.workspace, host.store, {}, ids, {}),
               got = run(plan, device.workspace, device.store, {}, ids, {});
    EXPECT_NEAR(got[0].values<float>()[0], want[0].values<float>()[0], 1e-4f) << i;
  }
}

// There are more shapes than a workspace keeps plans for. What was rounded for a plan that had to
// go may still be read by the others.
TEST_F(RoundedProducts, WhatWasRoundedForAPlanThatIsGoneMayBeReadByOthers) {
  const Variable layer = variable("layer", noise({4, 3}, 2), kSgd);
  const auto step = trace_function({floats({kAny, 4})}, [&](auto& in) {
    const Array out = matmul(arg(in, 0), layer.read());
    return std::vector<Array>{check_numerics(mean(square(out)), "the loss")};
  });
  PlanOptions options;
  options.products = Arithmetic::kBfloat16;
  const auto plan = plan_of(step, options);
  for (std::int64_t rows = 1; rows <= 20; ++rows) {
    const std::vector<Tensor> x = {noise({rows, 4}, 7)};
    const auto want = run(plan, host.workspace, host.store, {}, x, {}),
               got = run(plan, device.workspace, device.store, {}, x, {});
    EXPECT_NEAR(got[0].values<float>()[0], want[0].values<float>()[0], 1e-4f) << rows;
  }
}

// A step of two layers with biases: the first one's result is read by products and its relu's
// gradient, its gradient by a product and the sum for the bias.
ConcreteFunction trace_two_layers(const std::vector<Variable>& all) {
  return trace_function({floats({6, 4})}, [&](auto& in) {
    const Array h = relu(matmul(arg(in, 0), all[0].read()) + all[1].read());
    const Array loss = mean(square(matmul(h, all[2].read()) + all[3].read()));
    for (const auto& gradient : variable_gradients(loss))
      gradient.variable.update(kSgd, gradient.dense, 0.1f);
    return std::vector<Array>{loss};
  });
}

// The first layer's result and both layers' gradients are made in bfloat16, so that no pass rounds
// them. The kernels and the first layer's bias are rounded where they are read, in one piece of
// work; x is rounded for the products.
TEST_F(RoundedProducts, UnderMixedBfloat16WhatProductsReadLiesInHalfTheMemory) {
  const std::vector<Variable> all = {
      variable("k0", noise({4, 8}, 1), kSgd), variable("b0", noise({8}, 2), kSgd),
      variable("k1", noise({8, 3}, 3), kSgd), variable("b1", noise({3}, 4), kSgd)};
  const auto step = trace_two_layers(all);
  PlanOptions options;
  options.products = Arithmetic::kMixedBfloat16;
  const auto plan = plan_of(step, options);
  for (int i = 0; i < 4; ++i) {
    const std::vector<Tensor> x = {noise({6, 4}, 5 + i)};
    const auto want = run(plan, host.workspace, host.store, {}, x, {}),
               got = run(plan, device.workspace, device.store, {}, x, {});
    EXPECT_NEAR(got[0].values<float>()[0], want[0].values<float>()[0], 1e-2f);
    if (kCounted) {
      EXPECT_EQ(driver.counts().narrowed, i + 1);  // x
    }
  }
  for (VariableId id = 0; id < 4; ++id) {
    const Tensor here = read(device, id), there = read(host, id);
    for (std::size_t i = 0; i < here.values<float>().size(); ++i)
      EXPECT_NEAR(here.values<float>()[i], there.values<float>()[i], 1e-2f) << all[id].name();
  }
}

// A store that lends nothing: variables come from the host in each run, and are rounded on their
// way.
TEST_F(RoundedProducts, UnderMixedBfloat16VariablesOfAStoreThatLendsNoneAreRoundedOnTheirWay) {
  const std::vector<Variable> all = {
      variable("k0", noise({4, 8}, 1), kSgd), variable("b0", noise({8}, 2), kSgd),
      variable("k1", noise({8, 3}, 3), kSgd), variable("b1", noise({3}, 4), kSgd)};
  RecordingStore remote;
  for (const Variable& one : all) remote.local.create(one.shared_spec());
  PlanOptions options;
  options.products = Arithmetic::kMixedBfloat16;
  const auto plan = plan_of(trace_two_layers(all), options);
  for (int i = 0; i < 3; ++i) {
    const std::vector<Tensor> x = {noise({6, 4}, 5 + i)};
    const auto want = run(plan, host.workspace, host.store, {}, x, {}),
               got = run(plan, device.workspace, remote, {}, x, {});
    EXPECT_NEAR(got[0].values<float>()[0], want[0].values<float>()[0], 1e-2f);
    if (kCounted) {
      EXPECT_EQ(driver.counts().narrowed, i + 1);  // x
    }
  }
}

// An update makes no value, and says nothing of the one that comes next.
TEST_F(RoundedProducts, UnderMixedBfloat16AVariableThatIsReadBehindAnUpdateIsRoundedToo) {
  const Variable layer = variable("layer", noise({4, 3}, 1), kSgd),
                 other = variable("other", noise({2}, 2), kSgd);
  const auto step = trace_function({floats({6, 4})}, [&](auto& in) {
    other.assign(other.read() * 2.0f);
    return std::vector<Array>{mean(square(matmul(arg(in, 0), layer.read())))};
  });
  PlanOptions options;
  options.products = Arithmetic::kMixedBfloat16;
  run(plan_of(step, options), device.workspace, device.store, {}, {noise({6, 4}, 3)}, {});
  if (kCounted) {
    EXPECT_EQ(driver.counts().narrowed, 1);  // the argument
  }
}

}  // namespace
}  // namespace cairn
