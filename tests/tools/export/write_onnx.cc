// Models as ONNX, with batches and what the model predicts for them, for read_onnx.py to compare:
//   write_onnx FOLDER ADULT      ADULT: the folder of a model of examples/adult.toml
// FOLDER gets NAME.onnx with its files, and NAME.batch.npz, of small, operations and adult.
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/program.h"
#include "core/graph/ops.h"
#include "data/dataset/dataset_iterator.h"
#include "model/saved/loaded_model.h"
#include "model/saved/saved_model.h"
#include "nn/layers/embedding.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/model/small_model.h"
#include "tools/ckpt/format/array_file.h"
#include "tools/export/export_onnx.h"

namespace cairn::testing {
namespace {

namespace ckpt = tools::ckpt;

struct NamedTensor {
  std::string name;
  Tensor value;
};

void write_arrays(const std::string& path, const std::vector<NamedTensor>& all) {
  std::vector<ckpt::ArrayInfo> infos;
  for (const auto& [name, value] : all)
    infos.push_back({name, value.dtype(), value.shape().dims()});
  ckpt::ArrayWriter writer(path, ckpt::ArrayFormat::kNpz, infos, {});
  for (std::size_t i = 0; i < all.size(); ++i)
    writer.append(i, all[i].value.raw(), all[i].value.bytes());
  writer.finish();
}

void export_with(const std::string& model, const std::string& to, const Element& batch) {
  tools::export_onnx(model, to + ".onnx");
  LoadedModel loaded = LoadedModel::load(model);
  std::vector<NamedTensor> all;
  for (std::size_t i = 0; i < batch.size(); ++i)
    all.push_back({"in/" + loaded.about().input.columns[i].name, batch[i]});
  const std::vector<Tensor> outputs = loaded.predict(batch);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    all.push_back({"out/" + loaded.about().outputs[i].name, outputs[i]});
  write_arrays(to + ".batch.npz", all);
}

// The batch of `size` examples that the model takes, without a label.
Element batch_of(LoadedModel& model, const Dataset& examples, std::int64_t size) {
  const Dataset batches = examples.batch(size);
  const Element all = *open(batches)->next();
  Element taken;
  for (const ColumnSpec& column : model.about().input.columns)
    taken.push_back(all[batches.element_spec().find(column.name)]);
  return taken;
}

// ---- dense layers, a hashed table, ragged ids ----

// All of these examples' words were trained on, so that the weights have their rows.
void write_small(const std::string& folder) {
  OneDeviceStrategy strategy(3);
  SmallSave small;
  train(strategy, small.model, small.examples());
  small.save(strategy);
  LoadedModel loaded = LoadedModel::load(small.path);
  export_with(small.path, folder + "/small", batch_of(loaded, small.examples(), 24));
}

// ---- operation by operation ----

constexpr std::int64_t kRows = 5;

ElementSpec operations_input() {
  constexpr std::int64_t kMany = Shape::kUnknown;
  return {{{"x", {DType::kFloat32, {kMany, 6}}},
           {"ids", {DType::kInt64, {kMany, 3}}},
           {"image", {DType::kFloat32, {kMany, 6, 5, 2}}},
           {"vectors", {DType::kFloat32, {kMany, 4, 3}}},
           {"values", {DType::kFloat32, {kMany, 3}}},
           {"splits", {DType::kInt64, {kMany}}}},
          ""};
}

Tensor numbers(Shape shape, float scale) {
  Tensor made(DType::kFloat32, std::move(shape));
  auto values = made.mutable_values<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = scale * static_cast<float>(static_cast<int>(i * 37 % 41) - 20) / 8;
  return made;
}

Element operations_batch() {
  return {numbers({kRows, 6}, 1),
          Tensor::of<std::int64_t>({kRows, 3}, std::vector<std::int64_t>{0, 7, 2, 3, 3, 19'999, -1,
                                                                         5, 40, 9, 1, 0, 2, 2, 8}),
          numbers({kRows, 6, 5, 2}, 0.5f),
          numbers({kRows, 4, 3}, 0.25f),
          numbers({8, 3}, 2),
          Tensor::of<std::int64_t>({kRows + 1}, std::vector<std::int64_t>{0, 2, 2, 3, 7, 8})};
}

Outputs elementwise_outputs(const Array& x) {
  const Array above = abs(x) + 0.5f;
  return {{"expm1", expm1(x * 0.01f)},
          {"log1p", log1p(abs(x) * 1e-6f)},
          {"log1p_large", log1p(above * 100.0f)},
          {"gelu", gelu(x)},
          {"selu", selu(x)},
          {"swish", swish(x)},
          {"rsqrt", rsqrt(above)},
          {"softplus", softplus(x)},
          {"round", round(x * 4.0f)},
          {"trigonometry", sin(x) + cos(x) + tanh(x) * erf(x)},
          {"floor_mod", floor_mod(x, x * 0.3f + 7.0f) + floor_mod(x, Array(-0.75f))},
          {"whole_mod", floor_mod(cast(x * 8.0f, DType::kInt64), Array(std::int64_t{-3}))},
          {"whole_div", div(cast(x * 8.0f, DType::kInt64), Array(std::int64_t{3}))},
          {"finite", cast(is_finite(x / (x - x)), DType::kFloat32)},
          {"pow", pow(above, Array(1.5f))},
          {"clipped", clip_by_value(x, -0.5f, 0.75f)},
          {"checked", check_numerics(x, "x") * 2.0f},
          {"compared", where(logical_and(x > 0.0f, x != 0.5f), x, -x)}};
}

Outputs arranged_outputs(const Array& x, const Array& vectors) {
  const TopK top = top_k(x, 3);
  return {{"transposed", transpose(vectors, {2, 0, 1})},
          {"stacked", stack({x, x * 2.0f}, 1)},
          {"tiled", tile(x, {1, 2})},
          {"padded", pad(x, {{0, 0}, {2, 1}}, 0.5f)},
          {"cut", pad(x, {{0, 0}, {-1, -2}}, 0.0f)},
          {"summed", cumsum(x, 1, {.exclusive = true, .reverse = true})},
          {"sliced", slice(x, 1, 2, -1)},
          {"reshaped", reshape(vectors, {-1, 12})},
          {"like", broadcast_like(slice(x, 1, 0, 1), x)},
          {"ones", ones_like(x) + zeros_like(x)},
          {"count", cast(dim_size(x, 0) * element_count(vectors), DType::kFloat32)},
          {"largest", top.values},
          {"places", top.indices},
          {"first", argmax(x, 1)},
          {"last", argmin(x, 1)},
          {"along", gather_along(x, top.indices, 1)},
          {"softmax", softmax(x)},
          {"log_softmax", log_softmax(x)},
          {"sum", reduce_sum(x, {1})},
          {"means", reduce_mean(vectors, {0, 2}, true)},
          {"all", reduce_max(x) + reduce_min(x)},
          {"product", reduce_prod(slice(x, 1, 0, 2), {1})},
          {"logsumexp", reduce_logsumexp(x, {1})},
          {"matmul", matmul(x, x, false, true)},
          {"batch_matmul", batch_matmul(vectors, vectors, true, false)},
          {"interaction", dot_interaction(vectors)}};
}

Outputs ragged_outputs(const Array& values, const Array& splits, const Array& ids) {
  const Array keys = Tensor::of<std::int64_t>({4}, std::vector<std::int64_t>{0, 2, 5, 40});
  const Array first = reshape(slice(ids, 1, 0, 1), {-1});
  return {{"bag_sum", combine_rows(values, splits, Combiner::kSum)},
          {"bag_mean", combine_rows(values, splits, Combiner::kMean)},
          {"bag_sqrtn", combine_rows(values, splits, Combiner::kSqrtn)},
          {"dense", to_dense(values, splits, 3, -1.0f)},
          {"one_hot", one_hot(ids, 6)},
          {"found", find_key(ids, keys)},
          {"segments", unsorted_segment_sum(cast(ids, DType::kFloat32),
                                            minimum(first, Array(std::int64_t{3})), 4)}};
}

Outputs image_outputs(const Array& image) {
  const Array filter = numbers({3, 2, 2, 3}, 0.1f);
  return {{"convolved", conv2d(image, filter, {.strides = {2, 1}, .padding = Padding::kSame})},
          {"dilated", conv2d(image, filter, {.dilations = {2, 2}})},
          {"max_pooled", max_pool2d(image, {.window = {3, 2}, .padding = Padding::kSame})},
          {"mean_pooled", avg_pool2d(image, {.window = {3, 2}, .padding = Padding::kSame})}};
}

void add(Outputs& all, Outputs more) {
  for (auto& each : more) all.push_back(std::move(each));
}

// The table has more than a megabyte, and most of its rows no values of their own.
void write_operations(const std::string& folder) {
  OneDeviceStrategy strategy(3);
  const auto scope = strategy.scope();
  const nn::Embedding table({.name = "table", .rows = 20'000, .dim = 32});
  const Function predict = strategy.function([&](Iterator input) {
    const Features in = input.get_next().features;
    Outputs all = elementwise_outputs(in["x"]);
    add(all, arranged_outputs(in["x"], in["vectors"]));
    add(all, ragged_outputs(in["values"], in["splits"], in["ids"]));
    add(all, image_outputs(in["image"]));
    all.emplace_back("rows", table(maximum(in["ids"], Array(std::int64_t{0}))));
    const Array scale = reshape(slice(in["x"], 0, 0, 1), {6});
    all.emplace_back("layer_norm", layer_norm(in["x"], scale, scale));
    const BatchNorm normed = batch_norm(in["x"], scale, scale);
    all.emplace_back("batch_norm", normed.y);
    all.emplace_back("batch_mean", normed.mean);
    all.emplace_back("batch_variance", normed.variance);
    return all;
  });
  const std::string model = folder + "/operations";
  save_model(strategy, predict, operations_input(), {}, model);
  export_with(model, folder + "/operations", operations_batch());
}

// ---- Wide & Deep ----

void write_adult(const std::string& folder, const std::string& model) {
  LoadedModel loaded = LoadedModel::load(model);
  const Dataset examples = loaded.examples({"examples/data/adult/adult.test.gz"});
  export_with(model, folder + "/adult", batch_of(loaded, examples, 16'281));
}

}  // namespace
}  // namespace cairn::testing

int main(int argc, char** argv) {
  return cairn::run_program("write_onnx", [&] {
    if (argc != 3) throw cairn::InvalidArgumentError("write_onnx FOLDER ADULT");
    cairn::testing::write_small(argv[1]);
    cairn::testing::write_operations(argv[1]);
    cairn::testing::write_adult(argv[1], argv[2]);
    return 0;
  });
}
