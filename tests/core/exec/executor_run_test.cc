// A run as a whole: what it needs, shapes, memory, errors.
#include <gmock/gmock.h>

#include <cmath>

#include "core/exec/bound_plan.h"
#include "tests/core/executor_testing.h"
#include "tests/effort.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(Executor, AStepSaysWhatItNeedsAndGoesOnWhenItIsAskedAgain) {
  Variable v = variable("v", tensor({2}, {1, 2}));
  auto made = plan(trace_function({}, [&](const auto&) {
    Array value = v.read();
    v.assign_add(value);
    return value;
  }));
  Step step(made, workspace, store, context, {});
  const Step::Next first = step.next();
  ASSERT_TRUE(std::holds_alternative<Step::Pull>(first));
  store.pull(context, std::get<Step::Pull>(first).reads);
  const Step::Next second = step.next();
  ASSERT_TRUE(std::holds_alternative<Step::Push>(second));
  EXPECT_THAT(floats_of(std::get<Step::Push>(second).updates[0].value), ElementsAre(1, 2));
  store.push(context, std::get<Step::Push>(second).updates);
  EXPECT_TRUE(std::holds_alternative<Step::Finished>(step.next()));
  EXPECT_THAT(floats_of(step.outputs()[0]), ElementsAre(1, 2));
  EXPECT_THROW(step.next(), InternalError);
}

TEST_F(Executor, AStepThatIsGivenUpLeavesItsWorkspaceToOthers) {
  Variable v = variable("v", tensor({2}, {1, 2}));
  auto made = plan(trace_function({}, [&](const auto&) { return v.read(); }));
  {
    Step step(made, workspace, store, context, {});
    step.next();
  }
  EXPECT_THAT(floats_of(run(made, workspace, store, context, {}, {})[0]), ElementsAre(1, 2));
}

TEST_F(Executor, ManyWavesDoNotDeepenTheStack) {
  Variable v = variable("v", tensor({1}, {0}));
  constexpr int kWaves = effort(3000);
  auto out = run_function({}, {}, [&](const auto&) {
    for (int i = 0; i < kWaves; ++i) v.assign(v.read() + 1.0f);
    return v.read();
  });
  EXPECT_EQ(out[0].values<float>()[0], kWaves);
}

TEST_F(Executor, AnErrorOfTheStoreEndsTheRunAndTheWorkspaceServesAgain) {
  struct Broken final : VariableStore {
    void pull(const StepContext&, std::span<Read>) override {
      throw UnavailableError("ps 1 is away");
    }
    void push(const StepContext&, std::span<Update>) override {
      FAIL() << "pushed after a failed pull";
    }
  } broken;
  Variable v = variable("v", tensor({1}, {3}));
  auto made = plan(trace_function({}, [&](const auto&) {
    v.assign_add(v.read());
    return v.read();
  }));
  EXPECT_THROW(run(made, workspace, broken, context, {}, {}), UnavailableError);
  EXPECT_EQ(run(made, workspace, store, context, {}, {})[0].values<float>()[0], 6);
}

// The push may still be on its way when it is known to have failed.
TEST_F(Executor, WhatAFailedPushWasToSendIsNotOverwritten) {
  struct Failing final : VariableStore {
    void pull(const StepContext&, std::span<Read>) override {}
    void push(const StepContext&, std::span<Update> updates) override {
      sending.push_back(updates.front().value);
      throw UnavailableError("ps 1 is away");
    }
    std::vector<Tensor> sending;
  } failing;
  Variable v = variable("v", tensor({2}, {0, 0}), {kSgd});
  auto made = plan(trace_function({floats({2})}, [&](const auto& in) {
    v.update(kSgd, arg(in, 0) * 2.0f, 0.1f);
    return std::vector<Array>{};
  }));
  for (float x : {1.0f, 5.0f})
    EXPECT_THROW(run(made, workspace, failing, context, {tensor({2}, {x, x})}, {}),
                 UnavailableError);
  EXPECT_THAT(floats_of(failing.sending[0]), ElementsAre(2, 2));
  EXPECT_THAT(floats_of(failing.sending[1]), ElementsAre(10, 10));
}

TEST_F(Executor, ShapesThatDoNotFitInARunNameOperationNodeAndShapes) {
  auto message = message_of([&] {
    run_function({floats({kAny}), floats({kAny})}, {tensor({2}, {1, 2}), tensor({3}, {1, 2, 3})},
                 [&](const auto& in) { return arg(in, 0) + arg(in, 1); });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("add"), HasSubstr("node"), HasSubstr("float32[2]"),
                             HasSubstr("float32[3]")));
  message = message_of([&] {
    run_function({floats({kAny, 2}), ints({kAny})}, {tensor({1, 2}, {1, 2}), ids_of({1})},
                 [&](const auto& in) { return gather(arg(in, 0), arg(in, 1)); });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("gather"), HasSubstr("node"), HasSubstr("float32[1, 2]"),
                             HasSubstr("id 1")));
}

TEST_F(Executor, ArgumentsAndElementsThatDoNotFitTheSignatureAreRefused) {
  auto made = plan(trace_function({floats({kAny, 2})}, [&](const auto& in) { return arg(in, 0); }));
  EXPECT_THAT(
      message_of([&] {
        run(made, workspace, store, context, {tensor({2, 3}, {1, 2, 3, 4, 5, 6})}, {});
      }),
      AllOf(HasSubstr("argument 0"), HasSubstr("float32[2, 3]"), HasSubstr("float32[?, 2]")));
  EXPECT_THROW(run(made, workspace, store, context, {}, {}), InvalidArgumentError);
}

TEST_F(Executor, OutputsStayAsTheyAreWhenTheWorkspaceIsUsedAgain) {
  auto made = plan(trace_function({floats({kAny})}, [&](const auto& in) {
    return std::vector<Array>{arg(in, 0) * 2.0f, arg(in, 0)};
  }));
  auto first = run(made, workspace, store, context, {tensor({2}, {1, 2})}, {});
  run(made, workspace, store, context, {tensor({2}, {8, 9})}, {});
  EXPECT_THAT(floats_of(first[0]), ElementsAre(2, 4));
  EXPECT_THAT(floats_of(first[1]), ElementsAre(1, 2));
}

TEST_F(Executor, ShapesMayChangeFromRunToRun) {
  auto made = plan(trace_function({floats({kAny, 3})}, [&](const auto& in) {
    return softmax(relu(arg(in, 0)) * arg(in, 0) + 1.0f);
  }));
  for (std::int64_t rows : {1, 700, 0, 33, 700}) {
    Tensor x(DType::kFloat32, {rows, 3});
    auto values = x.mutable_values<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 5) - 2;
    Tensor out = run(made, workspace, store, context, {x}, {})[0];
    ASSERT_EQ(out.shape(), (Shape{rows, 3}));
    for (std::int64_t r = 0; r < rows; ++r) {
      auto row = out.rows(r, r + 1).values<float>();
      EXPECT_NEAR(row[0] + row[1] + row[2], 1, 1e-5);
    }
  }
}

TEST_F(Executor, EqualRunsGiveEqualBits) {
  auto made = plan(trace_function({floats({kAny, 37})}, [&](const auto& in) {
    return std::vector<Array>{reduce_sum(tanh(arg(in, 0)) * exp(arg(in, 0)), {0}),
                              matmul(arg(in, 0), arg(in, 0), true, false)};
  }));
  Tensor x(DType::kFloat32, {129, 37});
  auto values = x.mutable_values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  auto once = run(made, workspace, store, context, {x}, {});
  Workspace other;
  auto again = run(made, other, store, context, {x}, {});
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(floats_of(once[i]), floats_of(again[i]));
}

TEST(ExecutorLimits, ARunThatNeedsMoreMemoryThanItsPlanAllowsIsRefused) {
  auto traced = trace_function({floats({kAny, 100})}, [](const auto& in) {
    return sum(matmul(std::get<Array>(in[0]), std::get<Array>(in[0]), false, true));
  });
  const auto plan = make_plan(traced.graph, {}, {.bytes_max = 64 << 10});
  Workspace workspace;
  LocalStore store;
  run(plan, workspace, store, {}, {Tensor::zeros(DType::kFloat32, {10, 100})}, {});
  try {
    run(plan, workspace, store, {}, {Tensor::zeros(DType::kFloat32, {1000, 100})}, {});
    ADD_FAILURE() << "4 MB were taken";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("65536"), HasSubstr("smaller batches")));
  }
}

TEST(PlacedIntervals, ThatMeetInTimeAreApartInSpace) {
  std::vector<Interval> all;
  for (int i = 0; i < 200; ++i)
    all.push_back({i % 23, i % 23 + i % 7, static_cast<std::size_t>(i * 37 % 500), 0});
  std::size_t total = place_intervals(all), sum = 0;
  for (std::size_t a = 0; a < all.size(); ++a) {
    EXPECT_EQ(all[a].offset % 64, 0);
    EXPECT_LE(static_cast<std::size_t>(all[a].offset) + all[a].bytes, total);
    sum += all[a].bytes;
    for (std::size_t b = 0; b < a; ++b) {
      bool meet = all[a].first <= all[b].last && all[b].first <= all[a].last;
      bool overlap = all[a].offset < all[b].offset + static_cast<std::int64_t>(all[b].bytes) &&
                     all[b].offset < all[a].offset + static_cast<std::int64_t>(all[a].bytes);
      EXPECT_FALSE(meet && overlap) << a << " and " << b;
    }
  }
  EXPECT_LT(total, sum);  // places are used again
}

}  // namespace
}  // namespace cairn
