// Errors that an operation meets when it runs name the line that recorded it.
#include "core/base/origin.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/core/executor_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A front-end whose program stands at the line that the test says.
class Origins : public Executor {
 protected:
  Origins() {
    set_origin_source([] { return make_origin("/home/me/train.py", "step", line); });
  }
  ~Origins() override { set_origin_source(nullptr); }

  static ErrorParts error_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error&) {
      return error_parts(std::current_exception());
    }
    ADD_FAILURE() << "there was no error";
    return {};
  }

  static inline std::int32_t line = 1;
};

// Two matrices whose sizes are found not to fit when they come.
Array product_of_unknown(const std::vector<TraceArgument>& in, std::int32_t& line) {
  line = 30;
  const Array x = arg(in, 0) * 2.0f;
  line = 31;
  return matmul(x, arg(in, 1));
}
const std::vector<SignatureEntry> kUnknown{floats({2, kAny}), floats({kAny, 3})};

TEST_F(Origins, AnErrorOfARunSaysLineAndFunctionInsteadOfTheNode) {
  const auto run = [&] {
    run_function(kUnknown,
                 {Tensor::zeros(DType::kFloat32, {2, 3}), Tensor::zeros(DType::kFloat32, {2, 3})},
                 [](const auto& in) { return product_of_unknown(in, line); });
  };
  const ErrorParts error = error_of(run);
  EXPECT_THAT(error.message,
              StartsWith("train.py:31, in step: matmul(float32[2, 3], float32[2, 3]): "));
  EXPECT_EQ(error.place.origin, "/home/me/train.py:31");
  EXPECT_EQ(error.code, Code::kInvalidArgument);
}

TEST_F(Origins, AreNoPartOfAGraphsBytesOrHash) {
  const auto at = [](std::int32_t first) {
    return trace_function(kUnknown, [&](const auto& in) {
      line = first;
      return matmul(arg(in, 0), arg(in, 1));
    });
  };
  const ConcreteFunction here = at(5), there = at(6);
  EXPECT_EQ(here.bytes, there.bytes);
  EXPECT_EQ(here.hash, there.hash);
  EXPECT_EQ(here.graph.nodes.back().origin.line, 5);
  EXPECT_EQ(there.graph.nodes.back().origin.line, 6);
}

TEST_F(Origins, AReceiverOfTheGraphNamesTheNodeWhichLeadsToItsLine) {
  const ConcreteFunction sent =
      trace_function(kUnknown, [](const auto& in) { return product_of_unknown(in, line); });
  ConcreteFunction received = sent;
  received.graph = parse_graph(sent.bytes);
  const auto run = [&] {
    cairn::run(plan(received), workspace, store, context,
               {Tensor::zeros(DType::kFloat32, {2, 3}), Tensor::zeros(DType::kFloat32, {2, 3})},
               {});
  };
  ErrorParts error = error_of(run);
  EXPECT_THAT(error.message, StartsWith("node "));
  EXPECT_EQ(error.place.origin, "");
  error.message = "worker 1: " + error.message;
  const auto arrived = [&] {
    try {
      throw_error(error);
    } catch (...) {
      std::rethrow_exception(with_origin(std::current_exception(), sent.graph));
    }
  };
  const ErrorParts told = error_of(arrived);
  EXPECT_THAT(told.message, StartsWith("worker 1: train.py:31, in step: matmul(float32[2, 3], "));
  EXPECT_EQ(told.place.origin, "/home/me/train.py:31");
}

TEST_F(Origins, GradientsHaveTheLineOfTheOperationThatTheyAreOf) {
  const auto traced = trace_function({floats({3})}, [](const auto& in) {
    line = 7;
    const Array y = tanh(arg(in, 0));
    line = 8;
    const Array loss = mean(y);
    line = 9;
    return grad(loss, {arg(in, 0)});
  });
  for (const Node& node : traced.graph.nodes)
    if (node.op->name == "square" || node.op->name == "tanh") EXPECT_EQ(node.origin.line, 7);
}

TEST_F(Origins, ACheckOfNumericsHasTheLineOfTheCheck) {
  const auto run = [&] {
    run_function({floats({})}, {Tensor::scalar(std::numeric_limits<float>::infinity())},
                 [](const auto& in) {
                   line = 12;
                   return check_numerics(arg(in, 0), "the loss");
                 });
  };
  const ErrorParts error = error_of(run);
  EXPECT_TRUE(error.not_finite);
  EXPECT_EQ(error.place.origin, "/home/me/train.py:12");
}

TEST_F(Origins, AReadOfRowsThatAreNotThereHasItsLine) {
  Variable v = variable("v", tensor({2}, {1, 2}));
  const auto run = [&] {
    run_function({ints({1})}, {Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{9})},
                 [&](const auto& in) {
                   line = 21;
                   return v.gather(arg(in, 0));
                 });
  };
  const ErrorParts error = error_of(run);
  EXPECT_THAT(error.message, StartsWith("train.py:21, in step: "));
  EXPECT_EQ(error.place.origin, "/home/me/train.py:21");
}

TEST(Origin, OfAProgramWithoutAFrontEndIsNotKnown) {
  EXPECT_FALSE(current_origin().known());
  EXPECT_EQ(Origin{}.text(), "");
}

TEST(Origin, IsInItsScopeThatOfTheScope) {
  const OriginScope here(make_origin("a.py", "", 3));
  {
    const OriginScope unknown{Origin{}};
    EXPECT_EQ(current_origin().text(), "a.py:3");
    const OriginScope inner(make_origin("b.py", "f", 4));
    EXPECT_EQ(current_origin().text(), "b.py:4, in f");
  }
  EXPECT_EQ(current_origin().text(), "a.py:3");
}

}  // namespace
}  // namespace cairn
