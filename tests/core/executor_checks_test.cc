// Checks of numerics: what they say, and what they stop.
#include <gmock/gmock.h>

#include <limits>

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

}  // namespace
}  // namespace cairn
