// Operations that pick rows, add them up and order them.
#include "core/base/error.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "tools/export/onnx_ops.h"

namespace cairn::tools {
namespace {

using Names = OnnxGraph::Names;
using Name = OnnxGraph::Name;

Names gather(const OnnxNode& node) {
  return {node.out.add("Gather", node.in, {{"axis", node.number("axis")}})};
}
Names gather_along(const OnnxNode& node) {
  return {node.out.add("GatherElements", node.in, {{"axis", node.number("axis")}})};
}

// Ids out of range make zeros, where OneHot would count them from the end.
Names one_hot(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  std::vector<std::int64_t> classes(static_cast<std::size_t>(node.number("depth")));
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int64_t>(i);
  const Name ids = out.add("Cast", node.in, {{"to", onnx_type(DType::kInt64)}});
  const Name column = out.add("Unsqueeze", {ids, out.list({-1})});
  return {out.add("Cast", {out.add("Equal", {column, out.list(classes)})},
                  {{"to", onnx_type(DType::kFloat32)}})};
}

// The keys are looked up in a table that the node holds.
Names find_key(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  const Node& from = node.graph.nodes[static_cast<std::size_t>(node.node.inputs[1].node)];
  if (!from.op->has(OpFlags::kConstant))
    throw InvalidArgumentError("its keys are computed, and an operator's are fixed");
  const Tensor& sorted = from.attributes.get<Tensor>("value");
  const std::int64_t count = sorted.elements();
  if (count == 0) return {onnx_filled(out, onnx_shape(out, node.in[0]), DType::kInt64, 0)};
  OnnxAttributes attributes = {{"default_int64", count}};
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i) places.push_back(i);
  attributes.emplace_back("values_int64s", places);
  if (sorted.dtype() == DType::kString) {
    const auto keys = sorted.string_values();
    attributes.emplace_back("keys_strings", std::vector<std::string>(keys.begin(), keys.end()));
  } else {
    const auto keys = sorted.values<std::int64_t>();
    attributes.emplace_back("keys_int64s", std::vector<std::int64_t>(keys.begin(), keys.end()));
  }
  return {out.add("LabelEncoder", {node.in[0]}, attributes, kOnnxMl)};
}

// ---- ragged rows: those of example i are [row_splits[i], row_splits[i + 1]) ----

// The example that each of the rows belongs to, int64 [n]: how many examples end at or before it.
Name example_of_rows(OnnxGraph& out, const Name& rows, const Name& splits) {
  const Name n = onnx_size(out, rows, 0);
  const Name one_more = out.add("Add", {n, out.list({1})});
  const Name inner = onnx_slice(out, splits, 0, 1, -1);
  const Name ones = onnx_filled(out, onnx_shape(out, inner), DType::kInt64, 1);
  const Name marks =
      out.add("ScatterElements", {onnx_filled(out, one_more, DType::kInt64, 0), inner, ones},
              {{"axis", std::int64_t{0}}, {"reduction", std::string("add")}});
  const Name ends = out.add("CumSum", {marks, out.number(DType::kInt64, 0)});
  return onnx_slice(out, ends, 0, 0, -1);
}

Name examples_of(OnnxGraph& out, const Name& splits) {
  return out.add("Sub", {onnx_size(out, splits, 0), out.list({1})});
}

// `rows` added to zeros [count, ...] at `ids` [n].
Name added_at(OnnxGraph& out, const Name& count, const Name& ids, const Name& rows, DType dtype) {
  const Name rest = out.add("Shape", {rows}, {{"start", std::int64_t{1}}});
  const Name shape = out.add("Concat", {count, rest}, {{"axis", std::int64_t{0}}});
  const Name column = out.add("Unsqueeze", {ids, out.list({1})});
  return out.add("ScatterND", {onnx_filled(out, shape, dtype, 0), column, rows},
                 {{"reduction", std::string("add")}});
}

Names combine_rows(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  const Name &rows = node.in[0], &splits = node.in[1];
  const Name sum = added_at(out, examples_of(out, splits), example_of_rows(out, rows, splits), rows,
                            DType::kFloat32);
  const auto combiner = static_cast<Combiner>(node.number("combiner"));
  if (combiner == Combiner::kSum) return {sum};
  const Name lengths = out.add(
      "Sub", {onnx_slice(out, splits, 0, 1, kOnnxToTheEnd), onnx_slice(out, splits, 0, 0, -1)});
  const Name count = out.add("Cast", {out.add("Max", {lengths, out.list({1})})},
                             {{"to", onnx_type(DType::kFloat32)}});
  const Name divisor = combiner == Combiner::kMean ? count : out.add("Sqrt", {count});
  return {out.add("Div", {sum, out.add("Unsqueeze", {divisor, out.list({1})})})};
}

// A row of the value behind the others stands in all places that no row fills.
Names to_dense(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  const Name &values = node.in[0], &splits = node.in[1];
  std::vector<std::int64_t> columns(static_cast<std::size_t>(node.number("columns")));
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<std::int64_t>(i);
  const Name column = out.list({1});
  const Name begins = out.add("Unsqueeze", {onnx_slice(out, splits, 0, 0, -1), column});
  const Name ends = out.add("Unsqueeze", {onnx_slice(out, splits, 0, 1, kOnnxToTheEnd), column});
  const Name place = out.add("Add", {begins, out.list(columns)});
  const Name n = onnx_size(out, values, 0);
  const Name row = out.add("Where", {out.add("Less", {place, ends}), place, n});
  const Name rest = out.add("Shape", {values}, {{"start", std::int64_t{1}}});
  const Name one_row = out.add("Concat", {out.list({1}), rest}, {{"axis", std::int64_t{0}}});
  const Name padded = out.add("Concat", {values, out.add("Expand", {node.in[2], one_row})},
                              {{"axis", std::int64_t{0}}});
  return {out.add("Gather", {padded, row}, {{"axis", std::int64_t{0}}})};
}

// Rows whose id is below 0 are added to one more segment, which is cut off.
Names segment_sum(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  const std::int64_t segments = node.number("segments");
  const Name ids = out.add("Cast", {node.in[1]}, {{"to", onnx_type(DType::kInt64)}});
  const Name is_none = out.add("Less", {ids, out.number(DType::kInt64, 0)});
  const Name place = out.add("Where", {is_none, out.list({segments}), ids});
  const Name sums = added_at(out, out.list({segments + 1}), place, node.in[0], node.type(0).dtype);
  return {onnx_slice(out, sums, 0, 0, segments)};
}

// ---- order ----

Names top_k(const OnnxNode& node) {
  return node.out.add_several("TopK", {node.in[0], node.out.list({node.number("k")})}, 2);
}
Names argmax(const OnnxNode& node) {
  return {node.out.add("ArgMax", node.in,
                       {{"axis", node.number("axis")}, {"keepdims", std::int64_t{0}}})};
}

// The products of the pairs below the diagonal, row by row.
Names dot_interaction(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  const std::int64_t vectors = node.type(0).shape[1];
  if (vectors == Shape::kUnknown)
    throw InvalidArgumentError("the number of its vectors is not known");
  std::vector<std::int64_t> pairs;
  for (std::int64_t i = 1; i < vectors; ++i)
    for (std::int64_t j = 0; j < i; ++j) pairs.push_back(i * vectors + j);
  const Name turned = out.add("Transpose", node.in, {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
  const Name products = out.add("MatMul", {node.in[0], turned});
  const Name flat = out.add("Reshape", {products, out.list({-1, vectors * vectors})});
  return {out.add("Gather", {flat, out.list(pairs)}, {{"axis", std::int64_t{1}}})};
}

}  // namespace

std::vector<OnnxOp> onnx_row_ops() {
  return {
      {"gather", gather},
      {"gather_along", gather_along},
      {"one_hot", one_hot},
      {"find_key", find_key},
      {"combine_rows", combine_rows},
      {"to_dense", to_dense},
      {"top_k", top_k},
      {"argmax", argmax},
      {"unsorted_segment_sum", segment_sum},
      {"dot_interaction", dot_interaction},
  };
}

}  // namespace cairn::tools
