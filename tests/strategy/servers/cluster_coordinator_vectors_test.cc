// coordinator.json: what schedule, join, done and fetch answer, and what errors do, on three ps and
// two workers.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strategy/base/one_device_strategy.h"
#include "tests/strategy/servers/vector_cluster.h"
#include "tests/strategy/vector_cases.h"

namespace cairn {
namespace {

using testing::Cluster;
using testing::error_of;
using testing::fail_unknown;
using testing::integer;
using testing::json_of;
using testing::refused;

constexpr Duration kSoon = std::chrono::seconds(1);  // by then a closure that fails has failed

// ---- schedule ----

void increases(const Json& test) {
  Cluster on;
  for (int i = 0; i < test.at("in").at("closures").get<int>(); ++i) on.coordinator.schedule(on.add);
  on.coordinator.join(kPatience);
  EXPECT_EQ(on.coordinator.done(), test.at("out").at("done").get<bool>());
  EXPECT_EQ(on.value_of_v(), test.at("out").at("variable_increase").get<float>());
}

void schedules(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  const std::string id = test.at("id");
  if (in.contains("closures") && in.value("closure", "") == "add 1 to a variable")
    return increases(test);
  Cluster on;
  if (in.value("closure", "") == "constant 7") {
    RemoteValue value = on.schedule_ok();
    EXPECT_EQ(on.fetched(value), out.at("get_or_fetch"));
    EXPECT_EQ(on.coordinator.done(), out.at("done_after").get<bool>());
  } else if (id == "python_function" || id == "not_callable" || id == "remote_value_argument") {
    EXPECT_TRUE(refused(out));  // and by the compiler here: tests/compile
  } else if (id == "kwargs") {  // arguments go by their place: C++ has no names for them
    Function plus_one = on.cluster.strategy().function([](Array x) { return x + integer(1); });
    EXPECT_EQ(on.fetched(on.coordinator.schedule(plus_one, {Tensor::scalar<std::int32_t>(1)})),
              out.at("ok"));
  } else {
    fail_unknown(test, "the closure");
  }
}

// ---- fetch ----

// The leaves of a recorded nest in order, each by its way: "b/1/0". Texts are Python's own values,
// which no function returns here.
void leaves_of(const Json& nest, const std::string& path,
               std::vector<std::pair<std::string, Json>>& leaves) {
  if (nest.is_string()) return;
  const bool leaf = nest.is_object() && nest.contains("dtype");
  if (leaf) leaves.emplace_back(path, nest);
  if (leaf || !(nest.is_object() || nest.is_array())) return;
  std::size_t i = 0;
  for (const auto& [key, value] : nest.items()) {
    const std::string name = nest.is_array() ? std::to_string(i++) : key;
    leaves_of(value, path.empty() ? name : path + "/" + name, leaves);
  }
}

RemoteValue schedule_nest(Cluster& on) {
  Function nest = on.cluster.strategy().function([](Array x) {
    auto inner = std::tuple{x + x, std::vector<Array>{x + Array(1.0f)}};
    return std::tuple{Outputs{{"a", x}}, std::map<std::string, decltype(inner)>{{"b", inner}}};
  });
  return on.coordinator.schedule(nest, {Tensor::of<float>({2}, std::array{1.0f, 2.0f})});
}

void expect_leaves(const Json& recorded, const RemoteValue& value, const std::vector<Tensor>& got) {
  std::vector<std::pair<std::string, Json>> leaves;
  leaves_of(recorded, "", leaves);
  ASSERT_EQ(got.size(), leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_EQ(json_of(got[i]), leaves[i].second) << leaves[i].first;
    const std::string name =
        // the tuple around both
        (leaves[i].first.starts_with("a") ? "0/" : "1/") + leaves[i].first;
    EXPECT_EQ(json_of(value.get(name, kPatience)), leaves[i].second) << name;
  }
}

// A function that returns nothing (None, [] or {}), and nests without a value in them.
void fetches_nothing(Cluster& on, const Json& result) {
  Function nothing = on.cluster.strategy().function([] {});
  Function nobody = on.cluster.strategy().function([] { return std::vector<Array>{}; });
  for (Function* function : {&nothing, &nobody, &on.add}) {
    RemoteValue value = on.coordinator.schedule(*function);
    EXPECT_TRUE(on.coordinator.fetch(value, kPatience).empty());
  }
  if (result.is_null()) {
    EXPECT_EQ(on.coordinator.fetch(nullptr), nullptr);
    EXPECT_EQ(on.coordinator.fetch(std::optional<int>()), std::nullopt);
  }
  EXPECT_TRUE(on.coordinator.fetch(std::vector<RemoteValue>{}).empty());
  EXPECT_TRUE((on.coordinator.fetch(std::map<std::string, RemoteValue>{}).empty()));
}

void fetches(const Json& test) {
  const Json& result = test.at("out").at("result");
  const std::string id = test.at("id");
  Cluster on;
  if (id == "structure") {
    RemoteValue value = schedule_nest(on);
    expect_leaves(result, value, on.coordinator.fetch(value, kPatience));
  } else if (id == "nested_remote_values") {
    RemoteValue value = schedule_nest(on);
    auto got = on.coordinator.fetch(
        std::tuple{value, std::map<std::string, RemoteValue>{{"k", value}}, 3, nullptr}, kPatience);
    expect_leaves(result.at(0), value, std::get<0>(got));
    expect_leaves(result.at(1).at("k"), value, std::get<1>(got).at("k"));
    EXPECT_EQ(std::get<2>(got), result.at(2).get<int>());
    EXPECT_EQ(std::get<3>(got), nullptr);
  } else if (id == "plain") {
    EXPECT_EQ(on.coordinator.fetch(5), result.at(0).get<int>());
    EXPECT_EQ(json_of(on.coordinator.fetch(Tensor::scalar(2.0f))), result.at(1));
  } else if (result.is_null() || result.empty()) {
    fetches_nothing(on, result);
  } else {
    fail_unknown(test, "the structure");
  }
}

// ---- strategy ----

static_assert(!std::is_constructible_v<ClusterCoordinator, OneDeviceStrategy&>);

void is_a_strategy(const Json& test) {
  const std::string id = test.at("id");
  const Json& out = test.at("out");
  Cluster on;
  if (id == "run_outside_schedule") {
    Function one = on.cluster.strategy().function([] { return integer(1); });
    EXPECT_EQ(json_of(on.cluster.strategy().run(one).at(0)), out.at("ok"));
  } else if (id == "nested_schedule") {  // not one object here, but one queue
    ClusterCoordinator second(on.cluster.strategy());
    second.schedule(on.add);
    on.coordinator.join(kPatience);
    EXPECT_EQ(on.value_of_v(), 1.0f);
    EXPECT_EQ(&second.strategy(), &on.coordinator.strategy());
  } else if (id == "other_strategy") {
    EXPECT_TRUE(refused(out));  // and by the compiler here, above
  } else if (test.at("in").contains("gpus_per_worker")) {
    EXPECT_EQ(on.cluster.strategy().num_replicas_in_sync(),
              out.at("num_replicas_in_sync").get<int>());
  } else if (id == "distribute_dataset_directly") {
    Dataset dataset = Dataset::range(4).batch(2);
    EXPECT_EQ(on.cluster.strategy().experimental_distribute_dataset(dataset).element_spec(),
              dataset.element_spec());
  } else {
    fail_unknown(test, "the use");
  }
}

// ---- per-worker datasets ----

template <typename T>
concept Iterable = requires(T data) {
  data->get_next();
}
|| requires(T data) { data->begin(); }
|| requires(T data) { data.get_next(); };
static_assert(!Iterable<PerWorkerDatasetHandle>);

// Two closures at once go to two workers.
std::vector<Json> first_elements(Cluster& on, const PerWorkerDatasetHandle& data, int workers) {
  Function next = on.cluster.strategy().function(
      [](Iterator input) { return input.get_next().features["value"]; });
  std::vector<RemoteValue> values;
  for (int i = 0; i < workers; ++i) values.push_back(on.coordinator.schedule(next, {data}));
  std::vector<Json> got;
  for (const RemoteValue& value : values) got.push_back(on.fetched(value));
  return got;
}

// The reference's name of a specification without a batch, with one of any size, or with one of a
// fixed size.
std::string recorded_spec(const Shape& shape) {
  const std::string dims = shape.rank() == 0             ? ""
                           : shape[0] == Shape::kUnknown ? "None,"
                                                         : str(shape[0], ",");
  return "TensorSpec(shape=(" + dims + "), dtype=tf.int64, name=None)";
}

void expect_integers(const PerWorkerDatasetHandle& data, const Json& recorded) {
  const ElementSpec& spec = data->element_spec();
  ASSERT_EQ(spec.columns.size(), 1u);
  EXPECT_EQ(spec.columns[0].type.dtype, DType::kInt64);
  EXPECT_EQ(recorded_spec(spec.columns[0].type.shape), recorded);
}

// 0, 1, ...: in elements of the recorded one's form.
Dataset integers_as(const Json& ok) {
  const Json& shape = ok.at("first").at("shape");
  if (shape.empty()) return Dataset::range(100);
  const bool any_size =
      ok.at("element_spec").get<std::string>().find("(None,)") != std::string::npos;
  return Dataset::range(100).batch(shape.at(0), {.drop_remainder = !any_size});
}

// A dataset, one that the strategy distributes, a function, or a function that it distributes.
PerWorkerDatasetHandle made_of(Cluster& on, const std::string& kind, const Dataset& dataset) {
  Strategy& strategy = on.cluster.strategy();
  auto dataset_fn = [dataset](const InputContext&) { return dataset; };
  if (kind == "dataset_object") return on.coordinator.create_per_worker_dataset(dataset);
  if (kind == "distributed")
    return on.coordinator.create_per_worker_dataset(
        strategy.experimental_distribute_dataset(dataset));
  if (kind.find("from_function") != std::string::npos)
    return on.coordinator.create_per_worker_dataset(
        strategy.distribute_datasets_from_function(dataset_fn));
  if (kind.find("function") != std::string::npos || kind == "dataset_fn")
    return on.coordinator.create_per_worker_dataset(dataset_fn);
  return nullptr;
}

void gives_each_worker_its_data(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  const std::string id = test.at("id"), kind = in.value("kind", "");
  Cluster on;
  if (in.contains("range")) {
    Dataset dataset = Dataset::range(in.at("range")).batch(in.at("batch"));
    auto data =
        on.coordinator.create_per_worker_dataset([&](const InputContext&) { return dataset; });
    const int workers = in.at("workers");
    EXPECT_EQ(out.at("values_per_worker").get<int>(), workers);
    for (const Json& first : first_elements(on, data, workers)) EXPECT_EQ(first, out.at("first"));
  } else if (!kind.empty() && !refused(out)) {
    auto data = made_of(on, kind, integers_as(out.at("ok")));
    if (data == nullptr) return fail_unknown(test, "the dataset");
    expect_integers(data, out.at("ok").at("element_spec"));
    for (const Json& element : first_elements(on, data, 2))
      EXPECT_EQ(element, out.at("ok").at("first"));
  } else if (id == "next_on_coordinator") {
    EXPECT_TRUE(refused(out));  // and by the compiler here, above
  } else if (id == "input_contexts") {
    // the true numbers, where the reference says pipeline 0 of 1 to each
    // (docs/differences.md)
    EXPECT_EQ(out.at("ok").at(0).at("num_input_pipelines"), 1);
    std::vector<std::array<std::int64_t, 3>> contexts;
    on.coordinator.create_per_worker_dataset([&](const InputContext& context) {
      contexts.push_back(
          {context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync});
      return Dataset::range(1);
    });
    EXPECT_EQ(contexts, (std::vector<std::array<std::int64_t, 3>>{{2, 0, 1}, {2, 1, 1}}));
  } else {
    fail_unknown(test, "the dataset");
  }
}

// ---- errors ----

void an_error_comes_out(const Json& test) {
  if (test.at("id") != "out_of_range_in_join") return fail_unknown(test, "the error");
  Cluster on;
  auto data = on.coordinator.create_per_worker_dataset(Dataset::range(2).batch(2));
  Function next = on.cluster.strategy().function(
      [](Iterator input) { return input.get_next().features["value"]; });
  for (int i = 0; i < 6; ++i) on.coordinator.schedule(next, {data});
  EXPECT_EQ(error_of([&] { on.coordinator.join(kPatience); }), test.at("out").at("error"));
  EXPECT_EQ(error_of([&] { on.coordinator.join(kPatience); }),
            test.at("out").at("join_again").at("ok"));
}

void expect_usable(Cluster& on, const Json& recorded) {
  const float before = on.value_of_v();
  EXPECT_EQ(on.fetched(on.schedule_ok()), recorded.at("value"));
  on.coordinator.schedule(on.add);
  on.coordinator.join(kPatience);
  EXPECT_EQ(on.value_of_v() - before, recorded.at("increase").get<float>());
  EXPECT_EQ(on.coordinator.done(), recorded.at("done").get<bool>());
}

// Which call raises the closure's error first.
Json raised_in(Cluster& on, const std::string& call, const RemoteValue& failed) {
  if (call == "join") return error_of([&] { on.coordinator.join(kPatience); });
  if (call == "fetch") return error_of([&] { failed.get(kPatience); });
  on.cluster.run_for(kSoon);
  if (call == "schedule") return error_of([&] { on.schedule_ok(); });
  if (call == "done") return error_of([&] { on.coordinator.done(); });
  throw InvalidArgumentError("no test knows the call " + call);
}

void the_first_error_is_raised_once(const Json& test) {
  const Json& in = test.at("in");
  const Json& out = test.at("out").at("ok");
  Cluster on;
  std::vector<RemoteValue> before, after;
  for (int i = 0; i < in.at("closures_before").get<int>(); ++i) before.push_back(on.schedule_ok());
  RemoteValue failed = on.schedule_failing();
  for (int i = 0; i < in.at("closures_after").get<int>(); ++i) after.push_back(on.schedule_ok());

  const std::string call = in.at("raise_seen_in");
  EXPECT_EQ(out.at("first_error_from"), call);
  EXPECT_EQ(raised_in(on, call, failed), out.at("error"));
  if (out.contains("join_after_fetch")) {
    EXPECT_EQ(error_of([&] { on.coordinator.join(kPatience); }), out.at("join_after_fetch"));
  }

  EXPECT_EQ(error_of([&] { on.coordinator.join(kPatience); }), Json(nullptr)) << "raised twice";
  EXPECT_EQ(error_of([&] { failed.get(kPatience); }), out.at("failed_fetch"));
  ASSERT_LE(out.at("before_fetch").size(), before.size());  // the first few are recorded
  for (std::size_t i = 0; i < out.at("before_fetch").size(); ++i)
    EXPECT_EQ(on.fetched(before[i]), out.at("before_fetch").at(i).at("ok"));
  for (const RemoteValue& value : after) {  // which of them ran is a race
    const Json error = error_of([&] { value.get(kPatience); });
    EXPECT_TRUE(error.is_null() || error == "CancelledError") << error;
  }
  expect_usable(on, out.at("usable_after"));
}

void two_errors_are_raised_as_one(const Json& test) {
  const Json& out = test.at("out");
  Cluster on;
  RemoteValue first = on.schedule_failing();
  const Json raised = error_of([&] {
    on.schedule_failing();
    on.coordinator.join(kPatience);
  });
  EXPECT_EQ(raised, out.at("first_error"));
  EXPECT_EQ(error_of([&] { on.coordinator.join(kPatience); }), out.at("join_again").at("ok"));
  EXPECT_EQ(error_of([&] { first.get(kPatience); }), out.at("first_fetch"));
}

void an_error_propagates(const Json& test) {
  if (test.at("in").contains("raise_seen_in")) return the_first_error_is_raised_once(test);
  if (test.at("id") == "two_failures") return two_errors_are_raised_as_one(test);
  fail_unknown(test, "the propagation");
}

// The program's own exceptions leave schedule() as they are; a ValueError is an InvalidArgument
// here.
void an_error_has_its_type(const Json& test) {
  const std::string which = test.at("in").at("case");
  const Json& out = test.at("out");
  Cluster on;
  Function divides = on.cluster.strategy().function(
      []() -> Array { throw std::domain_error("ZeroDivisionError"); });
  Function refuses =
      on.cluster.strategy().function([]() -> Array { throw InvalidArgumentError("no"); });
  Json at_schedule;
  if (which == "invalid_index") {
    at_schedule = error_of([&] { on.schedule_failing(); });
  } else if (which == "bad_python") {
    at_schedule = error_of([&] { on.coordinator.schedule(divides); });
  } else if (which == "value_error_in_trace") {
    at_schedule = error_of([&] { on.coordinator.schedule(refuses); });
  } else {
    return fail_unknown(test, "the error");
  }
  EXPECT_EQ(at_schedule,
            out.at("schedule") == "ValueError" ? Json("InvalidArgumentError") : out.at("schedule"));
  EXPECT_EQ(error_of([&] { on.coordinator.join(kPatience); }), out.at("join"));
}

// Allowed here: a function is traced once a signature, and so makes it once (docs/differences.md).
void a_closure_may_make_a_variable(const Json& test) {
  if (test.at("id") != "created_in_closure") return fail_unknown(test, "the variable");
  EXPECT_TRUE(refused(test.at("out")));
  Cluster on;
  Strategy& strategy = on.cluster.strategy();
  std::vector<Variable> made;
  Function make = strategy.function([&] {
    made.push_back(strategy.create_variable({.name = "made", .shape = {}}));
    made.back().assign_add(Array(1.0f));
  });
  for (int i = 0; i < 3; ++i) on.coordinator.schedule(make);
  on.coordinator.join(kPatience);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].read().eval().item<float>(), 3.0f);
}

const testing::Kinds kCoordinatorKinds = {{"schedule", schedules},
                                          {"fetch", fetches},
                                          {"strategy", is_a_strategy},
                                          {"per_worker_dataset", gives_each_worker_its_data},
                                          {"errors", an_error_comes_out},
                                          {"error_propagation", an_error_propagates},
                                          {"error_types", an_error_has_its_type},
                                          {"variables", a_closure_may_make_a_variable}};

TEST(Vectors, Coordinator) { testing::run_cases("coordinator", kCoordinatorKinds); }
TEST(Vectors, CoordinatorOfFormsThatWereNotRecorded) {
  testing::run_more_cases("coordinator", kCoordinatorKinds);
}

}  // namespace
}  // namespace cairn
