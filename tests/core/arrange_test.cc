// Operations that order, pick, pad and repeat elements.
#include <gmock/gmock.h>

#include "core/exec/executor.h"
#include "core/rows/local_store.h"
#include "tests/core/arrange_checks.h"
#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT
using ::testing::HasSubstr;

TEST(Arrange, OperationsAgreeWithLoopsOnTheCpu) { check_arrange_ops(cpu_device()); }

// The message when `op` of two elements is run, whose number is unknown when it is traced.
template <typename F>
std::string message_when_run(F op) {
  const ConcreteFunction function =
      trace_function({floats({kAny})}, [&](const auto& in) { return op(arg(in, 0)); });
  return message_of([&] {
    Workspace workspace;
    LocalStore store;
    run(make_plan(parse_graph(function.bytes), {}), workspace, store, {}, {tensor({2}, {1, 2})},
        {});
  });
}

TEST(Arrange, AnAxisThatIsTooShortIsFoundWhenItsSizeIs) {
  EXPECT_THAT(message_when_run([](const Array& x) { return top_k(x, 3).values; }),
              HasSubstr("the largest 3 of 2 elements"));
  EXPECT_THAT(message_when_run([](const Array& x) {
                return pad(x, {{-2, -1}}, 0);
              }),
              HasSubstr("cut more than the 2 elements of axis 0"));
}

}  // namespace
}  // namespace cairn
