#include "tests/core/ops_cases.h"

#include <functional>

#include "core/graph/ops.h"
#include "nn/base/clipping.h"
#include "nn/losses/losses.h"

namespace cairn::testing {
namespace {

using Make = std::function<Array(const CaseInputs&)>;
using Makes = std::map<std::string, Make>;

Make unary(Array (*op)(const Array&)) {
  return [op](const CaseInputs& in) { return op(in["x"]); };
}
Make binary(Array (*op)(const Array&, const Array&)) {
  return [op](const CaseInputs& in) { return op(in["x"], in["y"]); };
}

Makes elementwise() {
  return {{"unary relu", unary(relu)},
          {"unary sigmoid", unary(sigmoid)},
          {"unary tanh", unary(tanh)},
          {"unary exp", unary(exp)},
          {"unary expm1", unary(expm1)},
          {"unary log", unary(log)},
          // recorded so, to stay where it is defined
          {"unary log1p", [](const CaseInputs& in) { return log1p(abs(in["x"])); }},
          {"unary square", unary(square)},
          {"unary softplus", unary(softplus)},
          {"unary elu", [](const CaseInputs& in) { return elu(in["x"]); }},
          {"unary selu", unary(selu)},
          {"unary gelu", unary(gelu)},
          {"unary gelu_approx", unary(gelu_approximate)},
          {"unary leaky_relu", [](const CaseInputs& in) { return leaky_relu(in["x"]); }},
          {"unary relu6", unary(relu6)},
          {"unary swish", unary(swish)},
          {"unary negative", unary(neg)},
          {"unary abs", unary(abs)},
          {"unary sign", unary(sign)},
          {"unary floor", unary(floor)},
          {"unary sqrt", unary(sqrt)},
          {"unary rsqrt", unary(rsqrt)},
          {"unary reciprocal", unary(reciprocal)},
          {"unary erf", unary(erf)},
          {"unary erfc", unary(erfc)},
          {"unary sin", unary(sin)},
          {"unary cos", unary(cos)},
          {"binary_broadcast add", binary(add)},
          {"binary_broadcast subtract", binary(sub)},
          {"binary_broadcast multiply", binary(mul)},
          {"binary_broadcast divide", binary(div)},
          {"binary_broadcast pow", binary(pow)},
          {"binary_broadcast floormod", binary(floor_mod)},
          {"binary_broadcast maximum", binary(maximum)},
          {"binary_broadcast minimum", binary(minimum)},
          {"binary_broadcast squared_difference", binary(squared_difference)},
          {"bias_add", [](const CaseInputs& in) { return in["value"] + in["bias"]; }},
          {"dropout", [](const CaseInputs& in) { return dropout(in["x"], in.attrs.at("rate")); }},
          {"clip", [](const CaseInputs& in) {
             return nn::clip_by_value(in["x"], in.attrs.at("min"), in.attrs.at("max"));
           }}};
}

// ---- products, reductions, losses ----

std::vector<int> axes_of(const Json& attrs) {
  const Json& axis = attrs.at("axis");
  if (axis.is_null()) return {};
  return axis.is_array() ? axis.get<std::vector<int>>() : std::vector<int>{axis.get<int>()};
}

Make reduction(Array (*op)(const Array&, const std::vector<int>&, bool)) {
  return [op](const CaseInputs& in) {
    return op(in["x"], axes_of(in.attrs), in.attrs.at("keepdims"));
  };
}

Make loss(Array (*op)(const Array&, const Array&)) {
  return [op](const CaseInputs& in) { return op(in["labels"], in["logits"]); };
}

Array each_loss(const CaseInputs& in) {
  const Array &prediction = in["y_pred"], &label = in["y_true"];
  const std::string name = in.attrs.at("loss");
  const bool logits = in.attrs.value("from_logits", false);
  if (name == "mse") return nn::mean_squared_error(prediction, label);
  if (name == "mae") return nn::mean_absolute_error(prediction, label);
  if (name == "huber") return nn::huber(prediction, label, in.attrs.at("delta"));
  if (name == "bce")
    return nn::binary_cross_entropy(prediction, label,
                                    {logits, in.attrs.value("label_smoothing", 0.0f)});
  if (name == "categorical_crossentropy")
    return nn::categorical_cross_entropy(prediction, label, {logits});
  if (name == "sparse_categorical_crossentropy")
    return nn::sparse_categorical_cross_entropy(prediction, label, {logits});
  throw NotFoundError("the loss \"" + name + "\"");
}

Array keras_loss(const CaseInputs& in) {
  Array each = each_loss(in);
  if (in.has("sample_weight")) each = each * in["sample_weight"];
  const std::string reduction = in.attrs.at("reduction");
  if (reduction == "none") return each;
  if (reduction == "sum") return sum(each);
  if (reduction == "mean") return mean(each);
  throw NotFoundError("the reduction \"" + reduction + "\"");
}

Array regularization(const CaseInputs& in) {
  Array total = 0.0f;
  if (in.attrs.contains("l1")) total = total + nn::l1_regularization(in["x"], in.attrs.at("l1"));
  if (in.attrs.contains("l2")) total = total + nn::l2_regularization(in["x"], in.attrs.at("l2"));
  return total;
}

Make product(Array (*op)(const Array&, const Array&, bool, bool)) {
  return [op](const CaseInputs& in) {
    return op(in["a"], in["b"], in.attrs.value("transpose_a", false),
              in.attrs.value("transpose_b", false));
  };
}

Makes sums_and_losses() {
  return {{"matmul", product(matmul)},
          {"batch_matmul", product(batch_matmul)},
          {"reduce sum", reduction(reduce_sum)},
          {"reduce mean", reduction(reduce_mean)},
          {"reduce max", reduction(reduce_max)},
          {"reduce min", reduction(reduce_min)},
          {"reduce prod", reduction(reduce_prod)},
          {"reduce logsumexp", reduction(reduce_logsumexp)},
          {"softmax", [](const CaseInputs& in) { return softmax(in["logits"]); }},
          {"log_softmax", [](const CaseInputs& in) { return log_softmax(in["logits"]); }},
          {"softmax_xent", loss(softmax_cross_entropy_with_logits)},
          {"sparse_softmax_xent", loss(sparse_softmax_cross_entropy_with_logits)},
          {"sigmoid_xent", loss(sigmoid_cross_entropy_with_logits)},
          {"keras_loss", keras_loss},
          {"l2_regularizer", regularization},
          {"dlrm_interaction", [](const CaseInputs& in) { return dot_interaction(in["z"]); }}};
}

// ---- shapes and ids ----

Array bag(const CaseInputs& in) {
  static const std::map<std::string, Combiner> kCombiners = {
      {"sum", Combiner::kSum}, {"mean", Combiner::kMean}, {"sqrtn", Combiner::kSqrtn}};
  Combiner combiner = kCombiners.at(in.attrs.at("combiner"));
  Array rows = gather(in["params"], in["values"]);
  return in.has("weights") ? combine_rows(rows, in["row_splits"], combiner, in["weights"])
                           : combine_rows(rows, in["row_splits"], combiner);
}

Array one_of_split(const CaseInputs& in) {
  const Json& parts = in.attrs.at("num_or_sizes");
  int axis = in.attrs.at("axis");
  auto take = in.attrs.at("take").get<std::size_t>();
  if (parts.is_number()) return split(in["x"], parts.get<int>(), axis).at(take);
  return split(in["x"], parts.get<std::vector<std::int64_t>>(), axis).at(take);
}

Array segment_sum(const CaseInputs& in) {
  auto ids = in.attrs.at("segment_ids").get<std::vector<std::int64_t>>();
  Tensor tensor = Tensor::of<std::int64_t>({static_cast<std::int64_t>(ids.size())}, ids);
  return unsorted_segment_sum(in["data"], tensor, in.attrs.at("num_segments"));
}

Make gather_by(const char* ids) {
  return [ids](const CaseInputs& in) {
    return gather(in["params"], in[ids], in.attrs.value("axis", 0));
  };
}
Make scatter(Array (*op)(const Array&, const Array&, const Array&)) {
  return [op](const CaseInputs& in) { return op(in["x"], in["indices"], in["updates"]); };
}

Makes shapes_and_ids() {
  return {{"embedding_lookup", gather_by("ids")},
          {"gather", gather_by("indices")},
          {"gather_axis", gather_by("indices")},
          {"embedding_bag", bag},
          {"embedding_bag_empty_rows", bag},
          {"concat",
           [](const CaseInputs& in) {
             return concat({in["a"], in["b"]}, in.attrs.at("axis"));
           }},
          {"stack",
           [](const CaseInputs& in) {
             return stack({in["a"], in["b"]}, in.attrs.at("axis"));
           }},
          {"split", one_of_split},
          {"transpose",
           [](const CaseInputs& in) {
             return transpose(in["x"], in.attrs.at("perm").get<std::vector<int>>());
           }},
          {"reshape",
           [](const CaseInputs& in) { return reshape(in["x"], shape_of(in.attrs.at("shape"))); }},
          {"scatter add", scatter(scatter_add)},
          {"scatter sub", scatter(scatter_sub)},
          {"scatter max", scatter(scatter_max)},
          {"scatter min", scatter(scatter_min)},
          {"scatter update", scatter(scatter_update)},
          {"unsorted_segment_sum", segment_sum},
          {"one_hot",
           [](const CaseInputs& in) { return one_hot(in["indices"], in.attrs.at("depth")); }}};
}

// ---- images and normalisation ----

// A number means the same down and across.
std::array<std::int64_t, 2> pair_of(const Json& json) {
  if (json.is_number()) return {json.get<std::int64_t>(), json.get<std::int64_t>()};
  return {json.at(0).get<std::int64_t>(), json.at(1).get<std::int64_t>()};
}
Padding padding_of(const Json& attrs) {
  return attrs.at("padding") == "SAME" ? Padding::kSame : Padding::kValid;
}

Array convolution(const CaseInputs& in) {
  return conv2d(in["x"], in["filter"],
                {pair_of(in.attrs.at("strides")), padding_of(in.attrs),
                 pair_of(in.attrs.value("dilations", Json(1)))});
}
Make pooling(Array (*op)(const Array&, const Pool2dOptions&)) {
  return [op](const CaseInputs& in) {
    return op(in["x"], {pair_of(in.attrs.at("ksize")), pair_of(in.attrs.at("strides")),
                        padding_of(in.attrs)});
  };
}

Array normalised_rows(const CaseInputs& in) {
  int axis = in.attrs.value("axis", -1);
  if (axis != -1 && axis != in["x"].rank() - 1)
    throw NotFoundError("layer_norm over another axis than the last");
  return layer_norm(in["x"], in["gamma"], in["beta"], in.attrs.at("epsilon"));
}

Makes images() {
  return {{"conv2d", convolution},
          {"pool2d max", pooling(max_pool2d)},
          {"pool2d avg", pooling(avg_pool2d)},
          {"layer_norm", normalised_rows},
          {"batch_norm_train", [](const CaseInputs& in) {
             return batch_norm(in["x"], in["gamma"], in["beta"], in.attrs.at("epsilon")).y;
           }}};
}

const Makes& all_makes() {
  static const Makes all = [] {
    Makes made;
    for (Makes part : {elementwise(), sums_and_losses(), shapes_and_ids(), images()})
      made.merge(part);
    return made;
  }();
  return all;
}

Outputs clipped_by_global_norm(const CaseInputs& in) {
  Outputs outputs;
  std::vector<Array> arrays;
  for (const auto& [name, array] : in.all()) arrays.push_back(array);
  std::vector<Array> clipped = nn::clip_by_global_norm(arrays, in.attrs.at("clip_norm"));
  std::size_t i = 0;
  for (const auto& [name, array] : in.all()) outputs.emplace_back(name, clipped[i++]);
  outputs.emplace_back("global_norm", nn::global_norm(arrays));
  return outputs;
}

}  // namespace

CaseInputs::CaseInputs(const Json& in, const std::vector<Array>& arrays)
    : attrs(in.value("attrs", Json::object())) {
  std::size_t i = 0;
  for (const auto& [name, json] : in.at("inputs").items()) by_name_[name] = arrays.at(i++);
}

std::string case_key(const Json& test) {
  const Json attrs = test.at("in").value("attrs", Json::object());
  std::string kind = test.at("kind");
  return attrs.contains("op") ? kind + " " + attrs.at("op").get<std::string>() : kind;
}

Outputs record_case(const std::string& key, const CaseInputs& in) {
  if (key == "clip_by_global_norm") return clipped_by_global_norm(in);
  auto make = all_makes().find(key);
  if (make == all_makes().end())
    throw NotFoundError("nothing here records the operation \"" + key + "\"");
  return {{"out", make->second(in)}};
}

}  // namespace cairn::testing
