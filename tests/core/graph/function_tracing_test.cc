#include <gmock/gmock.h>

#include "core/graph/recording.h"
#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct FakeSource final : IteratorSource {
  explicit FakeSource(ElementSpec made) : spec(std::move(made)) {}
  const ElementSpec& element_spec() const override { return spec; }
  ElementSpec spec;
};

struct FakeCreator final : VariableCreator {
  Variable create_variable(VariableSpec spec) override {
    ++created;
    return Variable(std::make_shared<const VariableSpec>(std::move(spec)));
  }
  void add_slots(const Variable&, const UpdateRule&) override {}
  int created = 0;
};

ElementSpec clicks() {
  return {{{"age", floats({kAny, 1})}, {"label", floats({kAny})}, {"site", ints({kAny})}}, "label"};
}

TEST(Tracing, EffectsStandInProgramOrder) {
  Variable v = make_variable("v", {3});
  auto traced = trace_function({floats({3})}, [&](const auto& in) {
    Array before = v.read();
    v.assign_add(arg(in, 0));
    Array after = v.read();
    v.assign(before);
    return std::vector<Array>{before, after};
  });
  EXPECT_THAT(op_names(traced.graph), ElementsAre("argument", "read_variable", "update_variable",
                                                  "read_variable", "update_variable"));
  EXPECT_EQ(traced.graph.outputs[0], (ValueRef{1, 0}));
  EXPECT_EQ(traced.graph.outputs[1], (ValueRef{3, 0}));
  EXPECT_TRUE(traced.graph.assigns());
}

TEST(Tracing, EqualReadsAreSharedOnlyBetweenUpdates) {
  Variable v = make_variable("v", {3});
  auto traced = trace_function({}, [&](const auto&) {
    Array twice = v.read() + v.read();
    v.assign(twice);
    return v.read();
  });
  EXPECT_EQ(count_ops(traced.graph, "read_variable"), 2);
}

TEST(Tracing, DeadCodeIsDroppedAndEqualNodesAreShared) {
  auto traced = trace_function({floats({kAny})}, [](const auto& in) {
    const Array& x = arg(in, 0);
    exp(x);
    return (x + 2.0f) * (x + 2.0f);
  });
  EXPECT_THAT(op_names(traced.graph), ElementsAre("argument", "constant", "add", "mul"));
}

TEST(Tracing, OutputsAreAskedForByPlaceOrByName) {
  const Outputs outputs{{"rating", Array(1.0f)}, {"click", Array(2.0f)}};
  EXPECT_EQ(outputs["click"].eval().item<float>(), 2);
  EXPECT_EQ(outputs[0].second.eval().item<float>(), 1);
  try {
    outputs["clik"];
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"click\"?"), std::string::npos);
  }
}

TEST(Tracing, AnUpdateIsKeptThoughNoOutputNeedsIt) {
  Variable v = make_variable("v", {});
  auto traced = trace_function({}, [&](const auto&) {
    v.assign_add(1.0f);
    return Outputs{};
  });
  EXPECT_EQ(count_ops(traced.graph, "update_variable"), 1);
  EXPECT_TRUE(traced.graph.updates_variables());
}

TEST(Tracing, AnUnknownLeadingDimensionStaysUnknown) {
  Variable w = make_variable("w", {4, 2});
  auto traced = trace_function({floats({kAny, 4})}, [&](const auto& in) {
    Array y = relu(matmul(arg(in, 0), w) + tensor({2}, {1, 2}));
    return std::vector<Array>{y, reduce_sum(y, {1}), concat({y, y}, 1), mean(y), reshape(y, {-1})};
  });
  const auto& graph = traced.graph;
  EXPECT_EQ(graph.type(graph.outputs[0]), floats({kAny, 2}));
  EXPECT_EQ(graph.type(graph.outputs[1]), floats({kAny}));
  EXPECT_EQ(graph.type(graph.outputs[2]), floats({kAny, 4}));
  EXPECT_EQ(graph.type(graph.outputs[3]), floats({}));
  EXPECT_EQ(graph.type(graph.outputs[4]), floats({kAny}));
}

TEST(Tracing, AnIteratorHandsOutFeaturesAndLabel) {
  auto traced = trace_function({clicks()}, [](const auto& in) {
    const auto& iterator = std::get<Iterator>(in[0]);
    auto [features, label] = iterator.get_next();
    auto [more, second] = iterator.get_next();
    return Outputs{{"age", features["age"]}, {"label", second}};
  });
  EXPECT_THAT(traced.graph.elements_taken(), ElementsAre(2));
  EXPECT_THAT(traced.graph.output_names, ElementsAre("age", "label"));
  EXPECT_EQ(traced.graph.outputs[0], (ValueRef{0, 0}));
  EXPECT_EQ(traced.graph.outputs[1], (ValueRef{1, 1}));
}

TEST(Tracing, AColumnThatIsNotThereNamesTheNearest) {
  auto misspelt = [] {
    trace_function({clicks()}, [](const auto& in) {
      return std::get<Iterator>(in[0]).get_next().features["sit"];
    });
  };
  EXPECT_THAT(message_of(misspelt), AllOf(HasSubstr("sit"), HasSubstr("site")));
}

TEST(Tracing, AnIteratorIsOfNoUseOnceTracingIsOver) {
  std::vector<Iterator> kept;
  trace_function({clicks()}, [&](const auto& in) {
    kept.push_back(std::get<Iterator>(in[0]));
    return Outputs{};
  });
  EXPECT_THROW(kept[0].get_next(), FailedPreconditionError);
}

TEST(Tracing, AValueOfAnotherFunctionIsRefused) {
  Array leaked;
  trace_function({floats({2})}, [&](const auto& in) { return leaked = arg(in, 0); });
  auto use = [&] { trace_function({}, [&](const auto&) { return leaked + 1.0f; }); };
  EXPECT_THAT(message_of<FailedPreconditionError>(use), HasSubstr("argument"));
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { leaked.eval(); }),
              HasSubstr("being traced"));
}

TEST(Tracing, TwoVariablesOfOneNameAndDifferentTypesAreRefused) {
  Variable a = make_variable("w", {2}), b = make_variable("w", {3});
  auto both = [&] {
    trace_function({}, [&](const auto&) { return std::vector<Array>{a.read(), b.read()}; });
  };
  EXPECT_THAT(message_of(both), HasSubstr("\"w\""));
}

TEST(Tracing, AnUndefinedOutputIsRefusedByName) {
  auto undefined = [] {
    trace_function({}, [](const auto&) { return Outputs{{"loss", Array()}}; });
  };
  EXPECT_THAT(message_of(undefined), HasSubstr("\"loss\""));
}

TEST(Tracing, AVariableWithoutARuntimeCannotBeReadEagerly) {
  EXPECT_THROW(make_variable("far", {2}).read(), FailedPreconditionError);
}

TEST(FunctionCache, TracesOnceForEachSignature) {
  int traced = 0;
  Function twice([&](Array x) { return ++traced, x + x; });
  FakeCreator creator;
  auto first = twice.concrete({tensor({2, 3}, {1, 2, 3, 4, 5, 6})}, creator);
  auto other_batch = twice.concrete({tensor({1, 3}, {1, 2, 3})}, creator);
  EXPECT_EQ(traced, 1);
  EXPECT_EQ(first, other_batch);

  twice.concrete({tensor({3, 2}, {1, 2, 3, 4, 5, 6})}, creator);
  twice.concrete({ids_of({1, 2})}, creator);
  EXPECT_EQ(traced, 3);
}

TEST(FunctionCache, TracesAgainForAnotherStrategyAndOpensItsScope) {
  Function step([](Iterator input) {
    VariableSpec spec;
    spec.name = "w";
    current_variable_creator().create_variable(spec).assign_add(1.0f);
    return input.get_next().label;
  });
  FakeCreator one, two;
  Argument input = std::make_shared<const FakeSource>(clicks());
  step.concrete({input}, one);
  step.concrete({input}, one);
  step.concrete({input}, two);
  EXPECT_EQ(one.created, 1);
  EXPECT_EQ(two.created, 1);
}

TEST(FunctionCache, AWrongNumberOrKindOfArgumentsIsRefused) {
  Function step([](Array x) { return x; }, "step");
  FakeCreator creator;
  EXPECT_THAT(message_of([&] { step.concrete({}, creator); }),
              AllOf(HasSubstr("step takes 1"), HasSubstr("0 were passed")));
  Argument input = std::make_shared<const FakeSource>(clicks());
  EXPECT_THAT(message_of([&] { step.concrete({input}, creator); }), HasSubstr("argument 0"));
}

TEST(FunctionCache, AThrowingBodyLeavesNoTraceOpen) {
  Function bad([](Array) -> Array { throw OutOfRangeError("mine"); });
  FakeCreator creator;
  EXPECT_THROW(bad.concrete({Tensor::scalar(1.0f)}, creator), OutOfRangeError);
  EXPECT_EQ(TraceContext::current(), nullptr);
}

TEST(Recording, AnEndlessChainOfOperationsUnwinds) {
  Array x = 1.0f;
  for (int i = 0; i < 300'000; ++i) x = -x;
  x = Array();
  SUCCEED();  // a recursive destructor would have run out of stack
}

}  // namespace
}  // namespace cairn
