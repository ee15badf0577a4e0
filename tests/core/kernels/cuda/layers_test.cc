// A training step of a multilayer perceptron on a device: how many pieces of work it is, and that
// it computes what the CPU does. Every piece reads and writes memory, and takes time to launch.
#include "tests/core/kernels/cuda/rows/device_rows_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's

// On a GPU nothing is counted.
void expect_pieces(int wanted, int counted) {
  if (SomeGpu::kCounted) {
    EXPECT_EQ(counted, wanted);
  }
}

struct PiecesTest : DeviceRowsTest {
  // Four runs on both sides. Returns of how many pieces the device's last one was.
  int run_on_both(const std::shared_ptr<const Plan>& plan) {
    int pieces = 0;
    for (int i = 0; i < 4; ++i) {
      run(plan, host.workspace, host.store, {}, {}, {});
      const int before = driver.counts().pieces;
      run(plan, device.workspace, device.store, {}, {}, {});
      pieces = driver.counts().pieces - before;
    }
    return pieces;
  }
};

struct LayersTest : PiecesTest {
  static constexpr std::int64_t kBatch = 16, kLayers = 4;
  std::int64_t width = 32;

  // As bench/gpu/step_bench.cc has it: what is given lies in variables that are not trained.
  ConcreteFunction step(const UpdateRule& rule) {
    const Variable x = variable("x", noise({kBatch, width}, 1), rule),
                   target = variable("target", noise({kBatch, width}, 2), rule);
    std::vector<Variable> kernels, biases;
    for (std::int64_t i = 0; i < kLayers; ++i) {
      const int seed = 3 + 2 * static_cast<int>(i);
      kernels.push_back(variable(str("kernel", i), scaled_noise(seed), rule));
      biases.push_back(variable(str("bias", i), noise({width}, seed + 1), rule));
    }
    return trace_function({}, [&](const auto&) {
      Array h = x.read();
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        h = matmul(h, kernels[i]) + biases[i];
        if (i + 1 < kernels.size()) h = relu(h);
      }
      for (const auto& gradient : variable_gradients(mean(square(h - target.read()))))
        if (gradient.variable.name() != "x" && gradient.variable.name() != "target")
          gradient.variable.update(rule, gradient.dense, 0.1f);
      return std::vector<Array>{};
    });
  }
  Tensor scaled_noise(int seed) const {
    Tensor made = noise({width, width}, seed);
    for (float& value : made.mutable_values<float>())
      value *= 2 / std::sqrt(static_cast<float>(width));
    return made;
  }

  // Steps on both sides, after which variables differ by at most `error`. Returns of how many
  // pieces a replayed step is.
  int pieces_of(Arithmetic arithmetic, float error, const UpdateRule& rule = kSgd) {
    const ConcreteFunction function = step(rule);
    const auto plan = plan_of(function, {.products = arithmetic});
    const int pieces = run_on_both(plan);
    if (kCounted) {
      EXPECT_EQ(driver.counts().replays, 3);
    }
    for (VariableId id = 0; id < variables.size(); ++id) {
      const Tensor here = read(device, id), there = read(host, id);
      for (std::size_t i = 0; i < here.values<float>().size(); ++i)
        EXPECT_NEAR(here.values<float>()[i], there.values<float>()[i], error)
            << variables[id].name();
    }
    return pieces;
  }
};

TEST_F(LayersTest, AStepUnderMixedBfloat16TakesThisManyPieces) {
  expect_pieces(23, pieces_of(Arithmetic::kMixedBfloat16, 1e-2f));
}

TEST_F(LayersTest, AStepUnderBfloat16TakesThisManyPieces) {
  expect_pieces(33, pieces_of(Arithmetic::kBfloat16, 1e-2f));
}

TEST_F(LayersTest, AStepInFloat32TakesThisManyPieces) {
  expect_pieces(21, pieces_of(Arithmetic::kFloat32, 1e-4f));
}

struct UpdatesTest : PiecesTest {
  // Runs on both sides, after which variables are equal. Returns of how many pieces the last is.
  int pieces_of(const std::function<void()>& body) {
    const auto function = trace_function({}, [&](const auto&) {
      body();
      return std::vector<Array>{};
    });
    const auto plan = plan_of(function);
    const int pieces = run_on_both(plan);
    expect_equal_stores();
    return pieces;
  }
};

// Sizes that four elements at a time do not divide, and more variables than one launch holds.
TEST_F(UpdatesTest, UpdatesOfWholeVariablesOfOneRuleGoTogether) {
  const UpdateRule adam{RuleKind::kAdam, {0.9f, 0.99f, 1e-3f}};
  std::vector<Variable> all;
  for (int i = 0; i < 40; ++i)
    all.push_back(variable(str("v", i), noise({i % 3 + 1, i + 1}, i + 1), i < 35 ? adam : kSgd));
  const auto update = [&](bool both) {
    for (int i = 0; i < 40; ++i) {
      const auto& v = all[static_cast<std::size_t>(i)];
      const Array gradient(noise(v.shape(), 100 + i));
      if (both || i < 35) v.update(i < 35 ? adam : kSgd, gradient, 0.1f);
    }
  };
  expect_pieces(2, pieces_of([&] { update(false); }));
  expect_pieces(3, pieces_of([&] { update(true); }));
}

// The assigned value lies in the other variable's own memory, which the same step updates.
TEST_F(UpdatesTest, AVariableThatIsGivenAnothersValueHasThatOfBeforeItsUpdate) {
  const Variable a = variable("a", noise({5, 3}, 1), kSgd),
                 b = variable("b", noise({5, 3}, 2), kSgd),
                 c = variable("c", noise({5, 3}, 3), kSgd);
  pieces_of([&] {
    c.update(kSgd, a.read(), 0.5f);
    a.assign(b.read());
    b.update(kSgd, Array(noise({5, 3}, 4)), 0.1f);
  });
}

}  // namespace
}  // namespace cairn
