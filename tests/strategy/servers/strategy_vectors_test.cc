// reduce.json: what a strategy's reduce, gather and run give, and a replica's all_reduce.
#include <variant>

#include "core/graph/ops.h"
#include "tests/strategy/recorded_strategies.h"

namespace cairn {
namespace {

using testing::expect_outcome;
using testing::expect_value;
using testing::fail_unknown;
using testing::logical_cpus;
using testing::RecordedStrategy;
using testing::refused;

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
  MirroredStrategy strategy(logical_cpus(in.at("replicas")));
  auto scope = strategy.scope();
  expect_outcome(test.at("out"),
                 [&] { return reduced(strategy, in, values_of(in.at("values"))).tensor(); });
}

// The same in a function that is called, where each replica has its own value. Their shapes are
// known to differ only when they meet, which is not the caller's argument then.
void reduces_in_a_function(const Json& test) {
  const Json& in = test.at("in");
  MirroredStrategy strategy(logical_cpus(in.at("replicas")));
  auto scope = strategy.scope();
  const PerReplica values = values_of(in.at("values"));
  Function own = strategy.function([](Array x) { return x; });
  Function whole =
      strategy.function([&] { return reduced(strategy, in, strategy.run(own, {values})[0]); });
  const Json& out = test.at("out");
  const auto call = [&] { return strategy.call(whole)[0].tensor(); };
  if (!refused(out)) return expect_value(out.at("ok"), call());
  EXPECT_THROW(call(), Error);
}

// The same under the default strategy, which has one replica.
void reduces_alone(const Json& test) {
  const Json& in = test.at("in");
  if (in.at("replicas") != 1) return;
  expect_outcome(test.at("out"), [&] {
    return reduced(default_strategy(), in, values_of(in.at("values"))).tensor();
  });
}

void reduces_plain_values(const Json& test) {
  const Json& in = test.at("in");
  MirroredStrategy strategy(logical_cpus(in.at("replicas")));
  expect_outcome(test.at("out"), [&] {
    return reduced(strategy, in, Array(testing::tensor_of(in.at("value")))).tensor();
  });
}

void gathers(const Json& test) {
  const Json& in = test.at("in");
  MirroredStrategy strategy(logical_cpus(in.at("replicas")));
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
  MirroredStrategy strategy(logical_cpus(in.at("replicas")));
  Function step = strategy.function([] { return id(); });
  EXPECT_EQ(numbers_of(strategy, strategy.run(step)[0]), out.at("values"));
  EXPECT_EQ(numbers_of(strategy, 3), out.at("plain"));
  EXPECT_EQ(strategy.num_replicas_in_sync(), out.at("num_replicas_in_sync").get<int>());
}

void runs_structures(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  if (in.at("text") != "returns of run: tuple (id, id*10), dict {a: id}, None")
    return fail_unknown(test, "the functions");
  MirroredStrategy strategy(logical_cpus(in.at("replicas")));
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

// Every replica's all_reduce gives all of them the same.
void all_reduces(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out").at("ok");
  MirroredStrategy strategy(logical_cpus(in.at("replicas")));
  const ReduceOp op = reduce_op_of(in.at("op").get<std::string>());
  Function step =
      strategy.function([&](Array x) { return get_replica_context().all_reduce(op, x); });
  const auto results = strategy.run(step, {values_of(in.at("values"))})[0];
  const auto local = testing::local_tensors(strategy, results);
  ASSERT_EQ(local.size(), out.size());
  for (std::size_t i = 0; i < local.size(); ++i) expect_value(out.at(i), local[i]);
}

void reduces_under_other_strategies(const Json& test) {
  Json in = test.at("in");
  const Json& out = test.at("out");
  RecordedStrategy named(in);
  Strategy& strategy = *named;
  if (out.contains("num_replicas_in_sync")) {
    EXPECT_EQ(strategy.num_replicas_in_sync(), out.at("num_replicas_in_sync").get<int>());
    return;
  }
  // the id alone says so
  if (test.at("id").get<std::string>().ends_with("axis0")) in["axis"] = 0;
  expect_outcome(out, [&] {
    return reduced(strategy, in, Array(testing::numbers(in.at("value"), "float32"))).tensor();
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
                                   reduces_in_a_function(test);
                                   reduces_alone(test);
                                 }},
                                {"reduce_plain", reduces_plain_values},
                                {"all_reduce", all_reduces},
                                {"gather", gathers},
                                {"local_results", lists_local_results},
                                {"run_structures", runs_structures},
                                {"reduce_other", reduces_under_other_strategies},
                                {"reduce_bad_op", refuses_other_operations}});
}

}  // namespace
}  // namespace cairn
