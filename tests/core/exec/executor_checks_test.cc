// Checks of numerics: what they say, what they stop, and what they leave alone.
#include <gmock/gmock.h>

#include <limits>

#include "core/graph/ops/ops_check.h"
#include "tests/core/executor_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(Executor, AFailedCheckNamesTheStepAndTheVariableAndPushesNothing) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  Variable good = variable("good", tensor({2}, {1, 2}), {kSgd}),
           bad = variable("bad", tensor({2}, {1, nan}), {kSgd});
  auto message = message_of([&] {
    run_function({}, {}, [&](const auto&) {
      Array loss = check_numerics(sum(good.read() * bad.read()), "the loss");
      for (const auto& gradient : variable_gradients(loss))
        gradient.variable.update(kSgd, gradient.dense, 0.1f);
      return loss;
    });
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("the loss is nan"), HasSubstr("step 12"), HasSubstr("\"bad\"")));
  EXPECT_THAT(store.kinds(), ElementsAre("pull"));
}

TEST_F(Executor, AFailedCheckNamesTheUpdateThatIsNotFiniteWhereTheVariablesAre) {
  Variable w = variable("w", tensor({1}, {0}), {kSgd});
  auto message = message_of([&] {
    run_function({}, {}, [&](const auto&) {
      Array loss = check_numerics(sum(log(w.read())), "the loss");
      w.update(kSgd, variable_gradients(loss)[0].dense, 0.1f);
      return loss;
    });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("the loss"), HasSubstr("update"), HasSubstr("\"w\"")));
}

TEST_F(Executor, AValueOutsideOfItsRangeEndsTheStepBeforeItsPush) {
  Variable w = variable("w", tensor({1}, {5}));
  const auto run_with = [&](float x) {
    return message_of([&] {
      run_function({floats({2})}, {tensor({2}, {0.5f, x})}, [&](const auto& in) {
        const Array checked = check_range(arg(in, 0), 0, 1, "a label", ", outside of [0, 1]");
        w.assign(reduce_sum(checked, {0}, true));
        return checked;
      });
    });
  };
  EXPECT_THAT(run_with(1.5f), HasSubstr("a label is 1.5 at step 12, outside of [0, 1]"));
  EXPECT_THAT(run_with(std::numeric_limits<float>::quiet_NaN()),
              HasSubstr("a label is nan at step 12, not finite"));
  for (const auto& call : store.calls) EXPECT_NE(call.kind, "push");
  EXPECT_EQ(run_with(1), "nothing was thrown");
}

TEST_F(Executor, AFailedCheckStopsEveryUpdateThatIsComputedFromTheCheckedValue) {
  Variable by_result = variable("by result", tensor({1}, {5})),
           by_value = variable("by value", tensor({1}, {5})),
           by_read = variable("by read", tensor({1}, {5}));
  EXPECT_THAT(message_of([&] {
                run_function({floats({1})}, {tensor({1}, {-1})}, [&](const auto& in) {
                  Array x = log(arg(in, 0));
                  by_result.assign(check_numerics(x, "the logarithm") * 2.0f);
                  by_value.assign(x * 3.0f);
                  by_read.assign(by_result.read());
                  return x;
                });
              }),
              HasSubstr("the logarithm is nan"));
  for (const auto& call : store.calls) EXPECT_NE(call.kind, "push");
}

TEST_F(Executor, AFailedCheckLeavesAloneWhatDoesNotDependOnIt) {
  Variable good = variable("good", tensor({1}, {5})), bad = variable("bad", tensor({1}, {5})),
           later = variable("later", tensor({1}, {5}));
  EXPECT_THAT(message_of([&] {
                run_function({floats({1})}, {tensor({1}, {-1})}, [&](const auto& in) {
                  bad.assign(check_numerics(log(arg(in, 0)), "the logarithm"));
                  good.assign(arg(in, 0));
                  later.assign(good.read() * 2.0f);
                  return good.read();
                });
              }),
              HasSubstr("the logarithm is nan"));
  EXPECT_THAT(store.kinds(), ElementsAre("push", "pull", "push"));
  EXPECT_EQ(value_of(good), -1);
  EXPECT_EQ(value_of(later), -2);
  EXPECT_EQ(value_of(bad), 5);
}

TEST_F(Executor, APushDoesNotWaitForAnotherValuesCheck) {
  Variable v = variable("v", tensor({1}, {5}));
  auto made = plan(trace_function({floats({1})}, [&](const auto& in) {
    Array unrelated = check_numerics(exp(arg(in, 0)), "unrelated");
    v.assign(check_numerics(arg(in, 0) * 2.0f, "what v takes"));
    return std::vector<Array>{v.read(), unrelated};
  }));
  std::vector<std::string> before_push;
  for (std::int32_t i : made->waves[0].compute)
    before_push.emplace_back(made->graph.nodes[static_cast<std::size_t>(i)].op->name);
  EXPECT_THAT(before_push, ElementsAre("argument", "constant", "mul", "check_numerics"));
  EXPECT_EQ(made->waves[0].updates.size(), 1u);
  EXPECT_EQ(made->waves.back().compute.size(), 2u);
}

TEST_F(Executor, AGradientThatPassesThroughACheckDependsOnIt) {
  Variable w = variable("w", tensor({1}, {1}), {kSgd});
  EXPECT_THROW(run_function({floats({1})}, {tensor({1}, {-1})},
                            [&](const auto& in) {
                              // the gradient by w is 1 whatever the logarithm is
                              Array loss =
                                  check_numerics(sum(w.read() + log(arg(in, 0))), "the loss");
                              w.update(kSgd, variable_gradients(loss)[0].dense, 0.1f);
                              return loss;
                            }),
               InvalidArgumentError);
  EXPECT_THAT(store.kinds(), ElementsAre("pull"));
}

TEST_F(Executor, APullByIdsThatDependOnAFailedCheckIsNotMade) {
  Variable table = variable("table", tensor({4, 1}, {0, 1, 2, 3}));
  EXPECT_THAT(message_of([&] {
                run_function({floats({1})}, {tensor({1}, {-1})}, [&](const auto& in) {
                  Array x = check_numerics(log(arg(in, 0)), "the logarithm");
                  return table.gather(cast(x, DType::kInt64) - 77);
                });
              }),
              HasSubstr("the logarithm"));
  EXPECT_TRUE(store.calls.empty());
}

}  // namespace
}  // namespace cairn
