// distributed_dataset.json: what the replicas of one process get of a dataset, step by step.
#include <functional>

#include "core/graph/ops.h"
#include "strategy/base/one_device_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "tests/data/testing.h"
#include "tests/strategy/in_sync_kinds.h"
#include "tests/strategy/nested_json.h"
#include "tests/strategy/vector_cases.h"

namespace cairn {
namespace {

using testing::dims;
using testing::fail_unknown;
using testing::nested;
using testing::refused;

Json step_of(const DistributedElement& step) {
  Json all = Json::array();
  for (const Element& of_replica : step.of_replicas()) all.push_back(nested(of_replica.front()));
  return all;
}
Json steps_of(const DistributedDataset& dataset) {
  Json all = Json::array();
  for (const DistributedElement& step : dataset) all.push_back(step_of(step));
  return all;
}

Dataset batches_of(const Json& in) {
  const BatchOptions options{in.value("drop_remainder", false)};
  return Dataset::range(in.at("range")).batch(in.at("batch"), options);
}

void reads_a_range(const Json& test) {
  MirroredStrategy strategy(testing::logical_cpus(test.at("in").at("replicas")));
  EXPECT_EQ(steps_of(strategy.experimental_distribute_dataset(batches_of(test.at("in")))),
            test.at("out").at("steps"));
}

void ends_as_optional_and_error(const Json& test) {
  const Json& out = test.at("out");
  MirroredStrategy strategy(testing::logical_cpus(test.at("in").at("replicas")));
  DistributedIterator optional = strategy.iterate(batches_of(test.at("in")));
  for (const Json& recorded : out.at("get_next_as_optional")) {
    const auto got = optional.get_next_as_optional();
    EXPECT_EQ(got.has_value(), recorded.at("has_value").get<bool>());
    EXPECT_EQ(got ? step_of(*got) : Json(), recorded.at("values"));
  }
  DistributedIterator plain = strategy.iterate(batches_of(test.at("in")));
  for (const Json& recorded : out.at("get_next")) {
    if (refused(recorded)) {
      EXPECT_EQ(recorded.at("error"), "OutOfRangeError");
      EXPECT_THROW(plain.get_next(), OutOfRangeError);
    } else {
      EXPECT_EQ(step_of(plain.get_next()), recorded.at("ok"));
    }
  }
  EXPECT_EQ(out.at("python_next_after_end"), "StopIteration");  // range-for: the loop is over
}

Dataset pipeline_of(const Json& in) {
  const std::int64_t range = in.at("range"), batch = in.at("batch");
  const Dataset all = Dataset::range(range);
  const auto times_ten = [](const Features& features) {
    return Outputs{{"value", features["value"] * Array(std::int64_t{10})}};
  };
  const auto no_third = [](const Features& features) {
    return floor_mod(features["value"], Array(std::int64_t{3})) != Array(std::int64_t{0});
  };
  const std::map<std::string, std::function<Dataset()>> known{
      {"repeat_before", [&] { return all.repeat(2).batch(batch); }},
      {"repeat_after", [&] { return all.batch(batch).repeat(2); }},
      {"map_after", [&] { return all.batch(batch).map(times_ten); }},
      {"prefetch_after", [&] { return all.batch(batch).prefetch(2); }},
      {"take_after", [&] { return all.batch(batch).take(2); }},
      {"skip_before", [&] { return all.skip(2).batch(batch); }},
      {"shard_before", [&] { return all.shard(2, 1).batch(batch); }},
      {"batch_twice", [&] { return all.batch(2).batch(batch); }},
      {"filter_before", [&] { return all.filter(no_third).batch(batch); }},
      {"window_unbatched", [&] { return all.window(batch).unbatch(); }},
      {"concat_after",
       [&] { return all.batch(batch).concatenate(Dataset::range(103).skip(100).batch(batch)); }},
      {"unbatch_batch", [&] { return all.batch(2).unbatch().batch(batch); }},
      {"from_tensors_repeat",
       [&] {
         return Dataset::from_tensors({{"value", Tensor::scalar(std::int64_t{7})}})
             .repeat(range)
             .batch(batch);
       }},
  };
  const std::string name = in.at("pipeline");
  if (!known.contains(name)) throw InvalidArgumentError("no test knows the pipeline " + name);
  return known.at(name)();
}

// The reference deals single examples out to one replica, and fails on several with an IndexError;
// several replicas want batches.
void reads_a_pipeline(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  const int replicas = in.at("replicas");
  const auto read = [&]() -> Json {
    if (replicas == 1) {
      OneDeviceStrategy strategy;
      return steps_of(strategy.experimental_distribute_dataset(pipeline_of(in)));
    }
    MirroredStrategy strategy(testing::logical_cpus(replicas));
    return steps_of(strategy.experimental_distribute_dataset(pipeline_of(in)));
  };
  if (!refused(out)) {
    EXPECT_EQ(read(), out.at("ok"));
  } else {
    EXPECT_TRUE(out.at("error") == "InvalidArgumentError" || out.at("error") == "IndexError");
    EXPECT_THROW(read(), InvalidArgumentError);
  }
}

void makes_a_dataset_of_its_context(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  MirroredStrategy strategy(testing::logical_cpus(in.at("replicas")));
  Json contexts = Json::array();
  const DistributedDataset dataset =
      strategy.distribute_datasets_from_function([&](const InputContext& context) {
        contexts.push_back({{"num_input_pipelines", context.num_input_pipelines},
                            {"input_pipeline_id", context.input_pipeline_id},
                            {"num_replicas_in_sync", context.num_replicas_in_sync}});
        return batches_of(in);
      });
  EXPECT_EQ(steps_of(dataset), out.at("steps"));
  EXPECT_EQ(contexts, out.at("contexts"));
}

void divides_a_global_batch(const Json& test) {
  const InputContext context{.num_replicas_in_sync = test.at("in").at("num_replicas_in_sync")};
  const std::int64_t global_batch = test.at("in").at("global_batch");
  if (refused(test.at("out"))) {
    EXPECT_THROW(context.get_per_replica_batch_size(global_batch), InvalidArgumentError);
  } else {
    EXPECT_EQ(context.get_per_replica_batch_size(global_batch), test.at("out").at("ok"));
  }
}

Tensor counted(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::of<float>(shape, values);
}
template <typename T>
Tensor row(std::initializer_list<T> values) {
  return Tensor::of<T>({static_cast<std::int64_t>(values.size())},
                       std::span<const T>(values.begin(), values.size()));
}
Tensor counted_up_to(std::int64_t n) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(i);
  return Tensor::of<std::int64_t>({n}, all);
}

// The names are the recording's.
Dataset dataset_named(const std::string& name, const testing::TempFolder& folder) {
  const auto slices = [](std::vector<std::pair<std::string, Tensor>> columns) {
    return Dataset::from_tensor_slices(std::move(columns));
  };
  const Tensor one = row<float>({1}), two = row<float>({2}), int_two = row<std::int32_t>({2});
  const Dataset pair = Dataset::from_tensors({{"0", one}, {"1", int_two}}).repeat(100);
  const std::map<std::string, std::function<Dataset()>> known{
      {"from_tensors_pair_rep100_b16", [&] { return pair.batch(16); }},
      {"from_tensors_pair_rep4_b4",
       [&] {
         return Dataset::from_tensors({{"0", one}, {"1", one}}).repeat(4).batch(4);
       }},
      {"from_tensors_pair_drop", [&] { return pair.batch(16, {.drop_remainder = true}); }},
      {"drop_not_divisible", [&] { return pair.batch(7, {.drop_remainder = true}); }},
      {"from_tensors_2_rep100_b4",
       [&] {
         return Dataset::from_tensors({{"0", two}}).repeat(100).batch(4);
       }},
      {"slices_int_b4",
       [&] {
         return slices({{"0", row<std::int32_t>({1, 2, 3, 4})}}).repeat(10).batch(4);
       }},
      {"dict",
       [&] {
         return slices({{"a", counted({8})}, {"b", counted_up_to(16).reshaped({8, 2})}}).batch(4);
       }},
      {"nested",
       [&] {
         return slices({{"x", row<double>({0, 1, 2, 3, 4, 5})}, {"y", counted_up_to(6)}}).batch(4);
       }},
      {"slices_pairs_b2",
       [&] {
         return slices({{"0", row<std::int32_t>({1, 2, 3, 4})},
                        {"1", row<std::int32_t>({0, 1, 0, 1})}})
             .batch(2);
       }},
      {"string",
       [&] {
         return slices({{"0", Tensor::strings({5}, {"a", "bb", "ccc", "d", "e"})}}).batch(4);
       }},
      {"bool",
       [&] {
         return slices({{"0", row<bool>({true, false, true})}}).batch(2);
       }},
      {"rank3",
       [&] {
         return slices({{"0", counted({4, 2, 2})}}).batch(4, {.drop_remainder = true});
       }},
      {"ragged",
       [&] {
         return Dataset::libsvm(
                    folder.write("ragged", "0 1:1\n0 2:1 3:1\n0\n0 4:1 5:1 6:1\n0 7:1\n"),
                    {.zero_based = true})
             .batch(4);
       }},
      {"padded",
       [&] {
         return Dataset::libsvm(folder.write("padded",
                                             "0 1:1\n0 2:2 3:2\n0 3:3 4:3 5:3\n"
                                             "0 4:4 5:4 6:4 7:4\n0 5:5 6:5 7:5 8:5 9:5\n"))
             .padded_batch(4);
       }},
  };
  if (!known.contains(name)) throw InvalidArgumentError("no test knows the dataset " + name);
  return known.at(name)();
}
// Which columns the recorded leaves are.
std::vector<std::string> leaves_of(const std::string& name, const ElementSpec& spec) {
  if (name == "ragged") return {"ids"};
  if (name == "padded") return {"values"};
  std::vector<std::string> all;
  for (const ColumnSpec& column : spec.columns) all.push_back(column.name);
  return all;
}

// The leaves of a recorded structure, in order.
bool is_leaf(const Json& value) {
  return value.is_object() && (value.contains("TensorSpec") || value.contains("PerReplicaSpec") ||
                               value.contains("RaggedTensorSpec") || value.contains("data") ||
                               value.contains("PerReplica") || value.contains("Ragged"));
}
void collect(const Json& value, std::vector<Json>& leaves) {
  if (is_leaf(value)) return leaves.push_back(value);
  for (const Json& each : value) collect(each, leaves);
}
std::vector<Json> leaves(const Json& value) {
  std::vector<Json> all;
  collect(value, all);
  return all;
}
// libsvm() has ids of int64 and values of float32, where the recording has int32 and int64.
void expect_spec(const Json& recorded, const ColumnSpec& column, const std::string& dataset) {
  const Json& one =
      recorded.contains("PerReplicaSpec") ? recorded.at("PerReplicaSpec").at(0) : recorded;
  if (one.contains("RaggedTensorSpec")) {
    EXPECT_EQ(column.type.shape, (Shape{Shape::kUnknown}));
    return;
  }
  EXPECT_EQ(dims(column.type.shape), one.at("TensorSpec").at("shape"));
  const std::string dtype = one.at("TensorSpec").at("dtype");
  const bool same = dataset != "padded";
  EXPECT_EQ(same ? dtype_name(column.type.dtype) : dtype, dtype);
}

Json rows_between(const Tensor& values, const Tensor& splits) {
  Json rows = Json::array();
  const auto at = splits.values<std::int64_t>();
  for (std::size_t i = 0; i + 1 < at.size(); ++i)
    rows.push_back(nested(values.rows(at[i], at[i + 1])));
  return rows;
}
// Numbers compare by value, whatever their type.
void expect_value(const Json& recorded, const Element& element, const ElementSpec& spec,
                  const std::string& column) {
  const Tensor& value = element.at(spec.find(column));
  if (recorded.contains("Ragged")) {
    EXPECT_EQ(rows_between(value, element.at(spec.find(column + "/row_splits"))),
              recorded.at("Ragged"));
  } else {
    EXPECT_EQ(dims(value.shape()), recorded.at("shape"));
    EXPECT_EQ(nested(value.reshaped({value.elements()})), recorded.at("data"));
  }
}

void knows_its_elements(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out").at("ok");
  const testing::TempFolder folder;
  const std::string name = in.at("dataset");
  MirroredStrategy strategy(testing::logical_cpus(in.at("replicas")));
  const DistributedDataset dataset =
      strategy.experimental_distribute_dataset(dataset_named(name, folder));
  const ElementSpec& spec = dataset.element_spec();
  const std::vector<std::string> columns = leaves_of(name, spec);
  for (const char* key : {"dataset_spec", "iterator_spec"}) {
    const std::vector<Json> recorded = leaves(out.at(key));
    ASSERT_EQ(recorded.size(), columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i)
      expect_spec(recorded[i], spec.columns[spec.find(columns[i])], name);
  }
  DistributedIterator pass = strategy.iterate(dataset);
  EXPECT_EQ(pass.element_spec(), spec);
  for (const Json& step : out.at("first_elements")) {
    const DistributedElement got = pass.get_next();
    const std::vector<Json> recorded = leaves(step);
    for (std::size_t i = 0; i < columns.size(); ++i)
      for (std::size_t replica = 0; replica < got.of_replicas().size(); ++replica)
        expect_value(recorded[i].contains("PerReplica") ? recorded[i].at("PerReplica").at(replica)
                                                        : recorded[i],
                     got.of_replicas()[replica], spec, columns[i]);
  }
}

void expect_labels_minus_features(MirroredStrategy& strategy, const Json& out) {
  const Dataset data = Dataset::from_tensors({{"x", row<float>({1})}, {"y", row<float>({1})}}, "y")
                           .repeat(4)
                           .batch(4);
  Function step = strategy.function([](Iterator input) {
    const auto [features, label] = input.get_next();
    return label - 0.3f * features["x"];
  });
  DistributedIterator pass = strategy.iterate(strategy.experimental_distribute_dataset(data));
  for (const Json& recorded : out) {
    const RunResult got = strategy.run(step, {pass});
    const auto of_replicas = strategy.experimental_local_results(got[0]);
    ASSERT_EQ(of_replicas.size(), recorded.size());
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      const auto values = of_replicas[i].values<float>();
      testing::expect_near(recorded[i], {values.begin(), values.end()}, 1e-6);
    }
  }
}

void expect_epoch_loss(MirroredStrategy& strategy, const Json& out) {
  Function step = strategy.function([](Iterator input) {
    return 0.0f * reduce_sum(cast(input.get_next().features["value"], DType::kFloat32)) + 0.1f;
  });
  DistributedIterator pass = strategy.iterate(Dataset::range(100).batch(10));
  for (std::size_t epoch = 1; epoch <= out.size(); ++epoch) {
    float sum = 0;
    for (int i = 0; i < 3; ++i)
      sum += strategy.reduce(ReduceOp::kSum, strategy.run(step, {pass})[0]).item<float>();
    char line[64];
    std::snprintf(line, sizeof line, "Epoch %zu, Loss: %.4f", epoch, static_cast<double>(sum / 3));
    EXPECT_EQ(line, out.at(epoch - 1));
  }
}

void reads_as_the_guide_does(const Json& test) {
  const int replicas = test.at("in").at("replicas");
  const std::string id = test.at("id");
  const Json& out = test.at("out").at("ok");
  MirroredStrategy strategy(testing::logical_cpus(replicas));
  if (id.starts_with("labels_minus_features")) return expect_labels_minus_features(strategy, out);
  if (id.starts_with("epoch_loss")) return expect_epoch_loss(strategy, out);
  if (id.starts_with("get_next_sixth")) {
    DistributedIterator pass = strategy.iterate(Dataset::range(100).batch(2));
    for (int i = 0; i < 5; ++i) pass.get_next();
    const DistributedElement sixth = pass.get_next();
    for (std::size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(nested(sixth.of_replicas().at(i).front()), out.at(i).at("data"));
  } else if (id.starts_with("optional_loop")) {
    DistributedIterator pass = strategy.iterate(Dataset::range(5).batch(4));
    for (const Json& recorded : out) EXPECT_EQ(step_of(*pass.get_next_as_optional()), recorded);
  } else {
    fail_unknown(test, "the lines");
  }
}

TEST(Vectors, DistributedDataset) {
  testing::run_cases("distributed_dataset", {{"range_batch", reads_a_range},
                                             {"optional_and_end", ends_as_optional_and_error},
                                             {"pipeline", reads_a_pipeline},
                                             {"from_function", makes_a_dataset_of_its_context},
                                             {"per_replica_batch_size", divides_a_global_batch},
                                             {"element_spec", knows_its_elements},
                                             {"guide", reads_as_the_guide_does}});
}

}  // namespace
}  // namespace cairn
