// reduce.json and variables.json: what a strategy's reduce, gather and run give, and what becomes
// of a variable that replicas assign to.
#include <variant>

#include "core/graph/ops.h"
#include "tests/coordinator/several_replicas.h"
#include "tests/coordinator/vector_cases.h"

namespace cairn {
namespace {

using testing::fail_unknown;
using testing::refused;
using testing::SeveralReplicas;

// Of a single operation: sums over replicas depend on their order.
constexpr double kOneOperation = 2e-6;

// There is no float64: the reference's mean of integers is a float32 here.
DType dtype_of(const Json& recorded) {
  const std::string name = recorded.at("dtype");
  return name == "float64" ? DType::kFloat32 : parse_dtype(name);
}

void expect_value(const Json& recorded, const Tensor& got) {
  EXPECT_EQ(got.dtype(), dtype_of(recorded));
  EXPECT_EQ(got.shape(), testing::shape_of(recorded.at("shape")));
  if (got.dtype() == DType::kFloat32) {
    const auto values = got.values<float>();
    return testing::expect_near(recorded, {values.begin(), values.end()}, kOneOperation, 1e-6);
  }
  if (got.dtype() != DType::kInt32) FAIL() << "no test compares " << got.to_string();
  const auto values = got.values<std::int32_t>();
  EXPECT_EQ(Json(std::vector<std::int32_t>(values.begin(), values.end())), recorded.at("data"));
}

// A recorded outcome: a value, or an error of a bad argument, which is InvalidArgument here.
void expect_outcome(const Json& out, const std::function<Tensor()>& call) {
  if (!refused(out)) return expect_value(out.at("ok"), call());
  const std::string error = out.at("error");
  if (error != "ValueError" && error != "InvalidArgumentError")
    FAIL() << "no test knows the error " << error;
  EXPECT_THROW(call(), InvalidArgumentError);
}

PerReplica values_of(const Json& list) {
  std::vector<Array> values;
  for (const Json& each : list) values.emplace_back(testing::tensor_of(each));
  return PerReplica(std::move(values));
}

RunValue reduced(Strategy& strategy, const Json& in, const PerReplica& value) {
  const ReduceOp op = reduce_op_of(in.at("op").get<std::string>());
  const Json axis = in.value("axis", Json());
  if (axis.is_null()) return strategy.reduce(op, value);
  if (axis.is_array()) return strategy.reduce(op, value, axis.get<std::vector<int>>());
  return strategy.reduce(op, value, axis.get<int>());
}

// ---- reduce.json ----

void reduces_per_replica_values(const Json& test) {
  const Json& in = test.at("in");
  SeveralReplicas strategy(in.at("replicas"));
  auto scope = strategy.scope();
  expect_outcome(test.at("out"),
                 [&] { return reduced(strategy, in, values_of(in.at("values"))).tensor(); });
}

// The same where nothing tells one replica from none.
void reduces_alone(const Json& test) {
  const Json& in = test.at("in");
  if (in.at("replicas") != 1) return;
  expect_outcome(test.at("out"), [&] {
    return reduced(default_strategy(), in, values_of(in.at("values"))).tensor();
  });
}

void reduces_plain_values(const Json& test) {
  const Json& in = test.at("in");
  SeveralReplicas strategy(in.at("replicas"));
  expect_outcome(test.at("out"), [&] {
    return reduced(strategy, in, Array(testing::tensor_of(in.at("value")))).tensor();
  });
}

void gathers(const Json& test) {
  const Json& in = test.at("in");
  SeveralReplicas strategy(in.at("replicas"));
  expect_outcome(test.at("out"), [&] {
    return strategy.gather(values_of(in.at("values")), in.at("axis").get<int>()).tensor();
  });
}

Json numbers_of(Strategy& strategy, const PerReplica& value) {
  Json numbers = Json::array();
  for (const RunValue& each : strategy.experimental_local_results(value))
    numbers.push_back(each.item<std::int32_t>());
  return numbers;
}

Array id() { return get_replica_context().replica_id_in_sync_group(); }

void lists_local_results(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  if (in.at("text") != "replica i returns replica_id_in_sync_group")
    return fail_unknown(test, "the function");
  SeveralReplicas strategy(in.at("replicas"));
  Function step = strategy.function([] { return id(); });
  EXPECT_EQ(numbers_of(strategy, strategy.run(step)[0]), out.at("values"));
  EXPECT_EQ(numbers_of(strategy, 3), out.at("plain"));
  EXPECT_EQ(strategy.num_replicas_in_sync(), out.at("num_replicas_in_sync").get<int>());
}

void runs_structures(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  if (in.at("text") != "returns of run: tuple (id, id*10), dict {a: id}, None")
    return fail_unknown(test, "the functions");
  SeveralReplicas strategy(in.at("replicas"));
  Function tuple = strategy.function([] { return std::tuple{id(), id() * 10}; });
  Function dict = strategy.function([] { return std::map<std::string, Array>{{"a", id()}}; });
  Function none = strategy.function([] {});
  const RunResult pair = strategy.run(tuple);
  EXPECT_EQ(Json::array({numbers_of(strategy, pair.get("0")), numbers_of(strategy, pair.get("1"))}),
            out.at("tuple"));
  EXPECT_EQ(numbers_of(strategy, strategy.run(dict).get("a")), out.at("dict_a"));
  EXPECT_EQ(out.at("none"), "None");
  EXPECT_TRUE(strategy.run(none).empty());
}

// Of the strategies with one replica, by the name that the recording gives them.
struct Named {
  OneDeviceStrategy one_device;
  Strategy& operator()(const std::string& name) {
    if (name == "one_device") return one_device;
    if (name == "default") return default_strategy();
    throw InvalidArgumentError("no test knows the strategy " + name);
  }
};

// A scalar or a list of numbers, in the recorded dtype.
Tensor numbers(const Json& value, const std::string& dtype) {
  const bool list = value.is_array();
  return testing::tensor_of({{"dtype", dtype},
                             {"shape", list ? Json::array({value.size()}) : Json::array()},
                             {"data", list ? value : Json::array({value})}});
}

void reduces_under_other_strategies(const Json& test) {
  Named named;
  Json in = test.at("in");
  const Json& out = test.at("out");
  Strategy& strategy = named(in.at("strategy"));
  if (out.contains("num_replicas_in_sync")) {
    EXPECT_EQ(strategy.num_replicas_in_sync(), out.at("num_replicas_in_sync").get<int>());
    return;
  }
  // the id alone says so
  if (test.at("id").get<std::string>().ends_with("axis0")) in["axis"] = 0;
  expect_outcome(out, [&] {
    return reduced(strategy, in, Array(numbers(in.at("value"), "float32"))).tensor();
  });
}

static_assert(!std::is_convertible_v<std::nullptr_t, ReduceOp>);  // op None

void refuses_other_operations(const Json& test) {
  const Json& op = test.at("in").at("op");
  if (op.is_null()) return;
  EXPECT_TRUE(refused(test.at("out")));
  EXPECT_THROW(reduce_op_of(op.get<std::string>()), InvalidArgumentError);
}

TEST(Vectors, Reduce) {
  testing::run_cases("reduce", {{"reduce",
                                 [](const Json& test) {
                                   reduces_per_replica_values(test);
                                   reduces_alone(test);
                                 }},
                                {"reduce_plain", reduces_plain_values},
                                {"gather", gathers},
                                {"local_results", lists_local_results},
                                {"run_structures", runs_structures},
                                {"reduce_other", reduces_under_other_strategies},
                                {"reduce_bad_op", refuses_other_operations}});
}

// ---- variables.json ----

Aggregation aggregation_of(const std::string& name) {
  if (name == "NONE") return Aggregation::kNone;
  if (name == "SUM") return Aggregation::kSum;
  if (name == "MEAN") return Aggregation::kMean;
  if (name == "ONLY_FIRST_REPLICA") return Aggregation::kOnlyFirstReplica;
  throw InvalidArgumentError("no test knows the aggregation " + name);
}

Synchronization synchronization_of(const std::string& name) {
  if (name == "AUTO") return Synchronization::kAuto;
  if (name == "NONE") return Synchronization::kNone;
  if (name == "ON_WRITE") return Synchronization::kOnWrite;
  if (name == "ON_READ") return Synchronization::kOnRead;
  throw InvalidArgumentError("no test knows the synchronization " + name);
}

Variable variable_of(Strategy& strategy, const Json& in) {
  const Tensor initial = numbers(in.at("initial"), in.value("dtype", "float32"));
  return strategy.create_variable(
      {.name = "v",
       .dtype = initial.dtype(),
       .shape = initial.shape(),
       .initializer = Initializer::from(initial),
       .aggregation = aggregation_of(in.at("aggregation")),
       .synchronization = synchronization_of(in.at("synchronization"))});
}

void assign(const Variable& v, const std::string& method, const Array& value) {
  if (method == "assign") return v.assign(value);
  if (method == "assign_add") return v.assign_add(value);
  if (method == "assign_sub") return v.assign_sub(value);
  throw InvalidArgumentError("no test knows the method " + method);
}

void is_assigned_in_replica_context(const Json& test) {
  const Json& in = test.at("in");
  Named named;
  Strategy& strategy = named(in.at("strategy"));
  auto scope = strategy.scope();
  Variable v = variable_of(strategy, in);
  const Json& passed = in.at("replica_values");
  ASSERT_EQ(passed.size(), 1u);
  Function step = strategy.function([&](Array value) { assign(v, in.at("method"), value); });
  strategy.run(step, {numbers(passed.at(0), in.at("dtype"))});
  expect_value(test.at("out").at("ok").at("read").at("ok"), v.read().eval());
}

void is_assigned_in_cross_replica_context(const Json& test) {
  const Json& in = test.at("in");
  Named named;
  Strategy& strategy = named(in.at("strategy"));
  auto scope = strategy.scope();
  const Tensor value = numbers(in.at("value"), in.at("dtype"));
  Variable at_once = variable_of(strategy, in), in_function = variable_of(strategy, in);
  assign(at_once, in.at("method"), value);
  Function step =
      strategy.function([&](Array passed) { assign(in_function, in.at("method"), passed); });
  strategy.call(step, {value});
  expect_value(test.at("out").at("ok").at("read").at("ok"), at_once.read().eval());
  expect_value(test.at("out").at("ok").at("read").at("ok"), in_function.read().eval());
}

void is_read(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out").at("ok");
  if (in.at("text") !=
      "ON_READ only: each replica first does assign_add(id+1); every replica returns v*10")
    return fail_unknown(test, "the function");
  Named named;
  Strategy& strategy = named(in.at("strategy"));
  auto scope = strategy.scope();
  Variable v = variable_of(strategy, in);
  Function step = strategy.function([&] {
    if (in.at("synchronization") == "ON_READ") v.assign_add(cast(id() + 1, DType::kFloat32));
    return v.read() * 10.0f;
  });
  expect_value(out.at("in_replica").at(0), strategy.run(step)[0].tensor());
  expect_value(out.at("cross").at("ok"), v.read().eval());
  EXPECT_EQ(v.read().eval().item<float>(), out.at("numpy").at("ok").get<float>());
}

// But for trainable, which a spec says: it is true unless told otherwise, under ON_READ too.
void has_defaults(const Json& test) {
  const Json& out = test.at("out");
  Named named;
  const VariableSpec spec{.name = "v"};
  EXPECT_EQ(spec.trainable, out.at("trainable").get<bool>());
  EXPECT_EQ(spec.aggregation, aggregation_of(out.at("aggregation")));
  EXPECT_EQ(spec.synchronization, synchronization_of(out.at("synchronization")));
  EXPECT_EQ(named(test.at("in").at("strategy")).num_replicas_in_sync(),
            out.at("num_replicas_in_sync").get<int>());
}

void takes_or_refuses_variables(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  Named named;
  Strategy& strategy = named(in.at("strategy"));
  const std::string text = in.at("text");
  if (text == "trainable=True with ON_READ") {
    EXPECT_FALSE(refused(out));
    Variable v = strategy.create_variable(
        {.name = "v", .synchronization = Synchronization::kOnRead, .trainable = true});
    EXPECT_TRUE(v.spec().trainable);
  } else if (text ==
             "a variable of a two-replica mirrored strategy assigned inside this strategy's run") {
    EXPECT_EQ(out.at("error"), "RuntimeError");
    SeveralReplicas another(2);
    Variable v = another.create_variable({.name = "v"});
    Function step = strategy.function([&] { v.assign(2.0f); });
    EXPECT_THROW(strategy.run(step), FailedPreconditionError);
  } else {
    fail_unknown(test, "the text");
  }
}

TEST(Vectors, Variables) {
  testing::run_cases("variables", {{"replica_context", is_assigned_in_replica_context},
                                   {"cross_replica_context", is_assigned_in_cross_replica_context},
                                   {"read", is_read},
                                   {"defaults", has_defaults},
                                   {"errors", takes_or_refuses_variables}});
}

}  // namespace
}  // namespace cairn
