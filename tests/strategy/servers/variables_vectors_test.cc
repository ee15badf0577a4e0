// variables.json: what becomes of a variable that replicas assign to, and what reads give, by
// strategy, synchronization and aggregation.
#include "core/graph/ops.h"
#include "tests/strategy/recorded_strategies.h"

namespace cairn {
namespace {

using testing::assign;
using testing::expect_value;
using testing::fail_unknown;
using testing::logical_cpus;
using testing::numbers;
using testing::RecordedStrategy;
using testing::refused;

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

// Compares the recorded state of the variable: a cross-replica read, at once and in a function, and
// the value of each replica.
void expect_contents(const Json& recorded, Strategy& strategy, const Variable& v) {
  const Json& read = recorded.at("read");
  Function reads = strategy.function([&] { return v.read(); });
  if (refused(read)) {
    EXPECT_EQ(read.at("error"), "ValueError");
    EXPECT_THROW(v.read(), InvalidArgumentError);
    EXPECT_THROW(strategy.call(reads), InvalidArgumentError);
  } else {
    expect_value(read.at("ok"), v.read().eval());
    expect_value(read.at("ok"), strategy.call(reads)[0].tensor());
  }
  if (!recorded.contains("per_replica")) return;
  const auto own = testing::local_tensors(strategy, strategy.run(reads)[0]);
  ASSERT_EQ(own.size(), recorded.at("per_replica").size());
  for (std::size_t i = 0; i < own.size(); ++i)
    expect_value(recorded.at("per_replica").at(i), own[i]);
}

// The call has the recorded outcome, and the variable these contents then.
void expect_change(const Json& out, Strategy& strategy, const Variable& v,
                   const std::function<void()>& change) {
  if (!refused(out)) {
    change();
    return expect_contents(out.at("ok"), strategy, v);
  }
  if (out.at("error") == "NotImplementedError") {
    EXPECT_THROW(change(), UnimplementedError);
  } else {
    EXPECT_EQ(out.at("error"), "ValueError");
    EXPECT_THROW(change(), InvalidArgumentError);
  }
}

PerReplica values_of_replicas(const Json& values, const std::string& dtype) {
  std::vector<Array> arrays;
  for (const Json& each : values) arrays.emplace_back(numbers(each, dtype));
  return PerReplica(std::move(arrays));
}

void is_assigned_in_replica_context(const Json& test) {
  const Json& in = test.at("in");
  RecordedStrategy named(in);
  Strategy& strategy = *named;
  auto scope = strategy.scope();
  Variable v = variable_of(strategy, in);
  Function step = strategy.function([&](Array value) { assign(v, in.at("method"), value); });
  expect_change(test.at("out"), strategy, v, [&] {
    strategy.run(step, {values_of_replicas(in.at("replica_values"), in.at("dtype"))});
  });
}

void is_assigned_in_cross_replica_context(const Json& test) {
  const Json& in = test.at("in");
  RecordedStrategy named(in);
  Strategy& strategy = *named;
  auto scope = strategy.scope();
  const Tensor value = numbers(in.at("value"), in.at("dtype"));
  Variable at_once = variable_of(strategy, in), in_function = variable_of(strategy, in);
  expect_change(test.at("out"), strategy, at_once,
                [&] { assign(at_once, in.at("method"), value); });
  Function step =
      strategy.function([&](Array passed) { assign(in_function, in.at("method"), passed); });
  expect_change(test.at("out"), strategy, in_function, [&] { strategy.call(step, {value}); });
}

// Recorded as a value for each copy where synchronization is ON_WRITE, and as an error where it is
// ON_READ; here a value per replica is no value across replicas (docs/differences.md).
void is_assigned_per_replica_values(const Json& test) {
  const Json& in = test.at("in");
  RecordedStrategy named(in);
  auto scope = (*named).scope();
  Variable v = variable_of(*named, in);
  const PerReplica values = values_of_replicas(in.at("replica_values"), in.at("dtype"));
  EXPECT_THROW(assign(v, in.at("method"), values), InvalidArgumentError);
}

void is_refused_when_made(const Json& test) {
  const Json& in = test.at("in");
  EXPECT_EQ(test.at("out").at("error"), "ValueError");
  RecordedStrategy named(in);
  EXPECT_THROW(variable_of(*named, in), InvalidArgumentError);
}

void is_scattered_from_a_replica(const Json& test) {
  const Json& in = test.at("in");
  const std::string method = in.at("method");
  if (in.at("slices") != "replica i: row [0,2,0][i], value [2,3]*(i+1)")
    return fail_unknown(test, "the slices");
  const int replicas = in.at("replicas");
  MirroredStrategy strategy(logical_cpus(replicas));
  auto scope = strategy.scope();
  Tensor initial(DType::kFloat32, {3, 2});
  for (std::size_t i = 0; i < 6; ++i)
    initial.mutable_values<float>()[i] = in.at("initial").at(i / 2).at(i % 2).get<float>();
  Variable v = strategy.create_variable({.name = "v",
                                         .shape = {3, 2},
                                         .initializer = Initializer::from(initial),
                                         .aggregation = aggregation_of(in.at("aggregation"))});
  std::vector<Array> ids, rows;
  for (std::int64_t i = 0; i < replicas; ++i) {
    const std::vector<std::int64_t> id{i == 1 ? 2 : 0};
    const auto factor = static_cast<float>(i + 1);
    ids.emplace_back(Tensor::of<std::int64_t>({1}, id));
    rows.emplace_back(Tensor::of<float>({1, 2}, std::vector<float>{2 * factor, 3 * factor}));
  }
  Function step =
      strategy.function([&](Array id, Array row) { testing::scatter(v, method, id, row); });
  expect_change(test.at("out"), strategy, v, [&] {
    strategy.run(step, {PerReplica(ids), PerReplica(rows)});
  });
}

Array replica_number() { return get_replica_context().replica_id_in_sync_group(); }

void is_read(const Json& test) {
  const Json& in = test.at("in");
  if (in.at("text") !=
      "ON_READ only: each replica first does assign_add(id+1); every replica returns v*10")
    return fail_unknown(test, "the function");
  RecordedStrategy named(in);
  Strategy& strategy = *named;
  auto scope = strategy.scope();
  Variable v = variable_of(strategy, in);
  Function step = strategy.function([&] {
    if (in.at("synchronization") == "ON_READ")
      v.assign_add(cast(replica_number() + 1, DType::kFloat32));
    return v.read() * 10.0f;
  });
  if (refused(test.at("out"))) {
    EXPECT_EQ(test.at("out").at("error"), "ValueError");
    EXPECT_THROW(strategy.run(step), InvalidArgumentError);
    return;
  }
  const Json& out = test.at("out").at("ok");
  const auto own = testing::local_tensors(strategy, strategy.run(step)[0]);
  ASSERT_EQ(own.size(), out.at("in_replica").size());
  for (std::size_t i = 0; i < own.size(); ++i) expect_value(out.at("in_replica").at(i), own[i]);
  expect_contents({{"read", out.at("cross")}}, strategy, v);
  EXPECT_EQ(refused(out.at("numpy")), refused(out.at("cross")));
  if (!refused(out.at("numpy"))) {
    EXPECT_NEAR(v.read().eval().item<float>(), out.at("numpy").at("ok").get<float>(), 1e-6f);
  }
}

// Except for trainable, which a spec states: it is true by default, under ON_READ too. AUTO stays
// AUTO, and means ON_WRITE.
void has_defaults(const Json& test) {
  const Json& out = test.at("out");
  RecordedStrategy named(test.at("in"));
  const VariableSpec spec{.name = "v"};
  EXPECT_EQ(spec.trainable, out.at("trainable").get<bool>());
  EXPECT_EQ(spec.aggregation, aggregation_of(out.at("aggregation")));
  EXPECT_EQ(spec.synchronization, Synchronization::kAuto);
  EXPECT_EQ((*named).num_replicas_in_sync(), out.at("num_replicas_in_sync").get<int>());
}

// The recorded class depends on which of two checks comes first; here it is that of the strategy.
void takes_or_refuses_variables(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  RecordedStrategy named(in);
  Strategy& strategy = *named;
  const std::string text = in.at("text");
  if (text == "trainable=True with ON_READ") {
    EXPECT_FALSE(refused(out));
    Variable v = strategy.create_variable(
        {.name = "v", .synchronization = Synchronization::kOnRead, .trainable = true});
    EXPECT_TRUE(v.spec().trainable);
  } else if (text ==
             "a variable of a two-replica mirrored strategy assigned inside this strategy's run") {
    EXPECT_TRUE(refused(out));
    MirroredStrategy another(logical_cpus(2));
    Variable v = another.create_variable({.name = "v"});
    Function step = strategy.function([&] { v.assign(2.0f); });
    EXPECT_THROW(strategy.run(step), FailedPreconditionError);
  } else {
    fail_unknown(test, "the text");
  }
}

TEST(Vectors, Variables) {
  testing::run_cases("variables",
                     {{"replica_context", is_assigned_in_replica_context},
                      {"cross_replica_context", is_assigned_in_cross_replica_context},
                      {"cross_replica_per_replica_value", is_assigned_per_replica_values},
                      {"create_error", is_refused_when_made},
                      {"scatter_replica_context", is_scattered_from_a_replica},
                      {"read", is_read},
                      {"defaults", has_defaults},
                      {"errors", takes_or_refuses_variables}});
}

}  // namespace
}  // namespace cairn
