// Operations that join values and cut them along one axis.
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;

// The parts' shape with the axis' sizes added up; the parts begin at input `first`.
Shape joined(const OpInputs& in, std::size_t first, int axis) {
  Shape shape = in.types[first].shape;
  std::int64_t along = 0;
  for (std::size_t i = first; i < in.types.size(); ++i) {
    const Shape& part = in.types[i].shape;
    if (in.types[i].dtype != in.types[first].dtype)
      infer::fail("the parts' dtypes differ (see cast)");
    if (part.rank() != shape.rank() || !infer::shapes_agree(shape.with_dim(axis, Shape::kUnknown),
                                                            part.with_dim(axis, Shape::kUnknown)))
      infer::fail("the parts differ in other axes than ", axis);
    along =
        infer::unknown(along) || infer::unknown(part[axis]) ? Shape::kUnknown : along + part[axis];
    shape = infer::merge_shapes(shape.with_dim(axis, 1), part.with_dim(axis, 1));
  }
  return shape.with_dim(axis, along);
}

// As np.concatenate: the parts agree in all axes but one, along which their sizes add up.
OpTypes infer_concat(const OpInputs& in) {
  infer::want_rank_at_least(in, 0, 1);
  return {{in.types[0].dtype, joined(in, 0, infer::want_axis(in, in.types[0].shape.rank()))}};
}

// As np.stack: a new axis, along which each part has size 1.
OpTypes infer_stack(const OpInputs& in) {
  infer::want_fixed_size(in, 0);
  infer::want_same_dtype(in);
  Shape shape = in.types[0].shape;
  for (const TensorType& part : in.types) {
    if (!infer::shapes_agree(shape, part.shape)) infer::fail("the parts' shapes differ");
    shape = infer::merge_shapes(shape, part.shape);
  }
  std::vector<std::int64_t> dims = shape.dims();
  dims.insert(dims.begin() + infer::want_axis(in, shape.rank() + 1),
              static_cast<std::int64_t>(in.types.size()));
  return {{in.types[0].dtype, Shape(std::move(dims))}};
}

// A size of -1 reaches to the end, as in tf.slice.
OpTypes infer_slice(const OpInputs& in) {
  infer::want_fixed_size(in, 0);
  const Shape& shape = in.types[0].shape;
  int axis = infer::want_axis(in, shape.rank());
  std::int64_t begin = in.attributes.get<std::int64_t>("begin"),
               size = in.attributes.get<std::int64_t>("size");
  if (begin < 0 || size < -1) infer::fail("a slice from ", begin, " of size ", size);
  std::int64_t whole = shape[axis];
  if (!infer::unknown(whole) && (begin > whole || size > whole - begin))
    infer::fail("a slice from ", begin, " of size ", size, " leaves axis ", axis, " of size ",
                whole);
  std::int64_t made = size >= 0 ? size : infer::unknown(whole) ? Shape::kUnknown : whole - begin;
  return {{in.types[0].dtype, shape.with_dim(axis, made)}};
}

// The piece's size is that of dy, and what lies around it follows from the second input's shape.
OpTypes infer_slice_grad(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  infer::want_dtype(in, 1, infer::kFloats);
  const Shape &dy = in.types[0].shape, &like = in.types[1].shape;
  int axis = infer::want_axis(in, like.rank());
  std::int64_t begin = in.attributes.get<std::int64_t>("begin");
  if (begin < 0) infer::fail("a slice that begins below 0");
  if (dy.rank() != like.rank() || !infer::shapes_agree(dy.with_dim(axis, Shape::kUnknown),
                                                       like.with_dim(axis, Shape::kUnknown)))
    infer::fail("the gradient of a slice differs in other axes than ", axis);
  std::int64_t whole = like[axis], size = infer::unknown(dy[axis]) ? 0 : dy[axis];
  if (!infer::unknown(whole) && (begin > whole || size > whole - begin))
    infer::fail("a slice from ", begin, " of size ", size, " leaves axis ", axis, " of size ",
                whole);
  return {in.types[1]};
}

// The parts come along as inputs, because their sizes are known only when the graph runs.
OpTypes infer_concat_grad(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  infer::want_rank_at_least(in, 1, 1);
  int axis = infer::want_axis(in, in.types[1].shape.rank());
  std::int64_t index = in.attributes.get<std::int64_t>("index");
  if (index < 0 || index + 1 >= static_cast<std::int64_t>(in.types.size()))
    infer::fail("no part has the index ", index);
  if (in.types[1].dtype != DType::kFloat32 ||
      !infer::shapes_agree(joined(in, 1, axis), in.types[0].shape))
    infer::fail("the gradient does not have the shape of the concatenation");
  return {in.types[static_cast<std::size_t>(index) + 1]};
}

using Arrays = std::vector<Array>;

std::int64_t axis_of(const Array& y) { return y.node()->attributes.get<std::int64_t>("axis"); }

// Each part gets its piece of dy back. Where a part begins is known only as long as the sizes
// before it are; behind an unknown one a kernel finds out when it runs.
Arrays grad_concat(const Array& y, const Array& dy) {
  const Arrays& parts = y.node()->inputs;
  int axis = static_cast<int>(axis_of(y));
  Arrays gradients;
  std::int64_t begin = 0;  // unknown from the first part of unknown size on
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::int64_t size = parts[i].shape()[axis];
    if (infer::unknown(begin) || infer::unknown(size)) {
      begin = Shape::kUnknown;
      gradients.push_back(concat_grad(dy, parts, axis, static_cast<int>(i)));
    } else {
      gradients.push_back(slice(dy, axis, begin, size));
      begin += size;
    }
  }
  return gradients;
}

// A piece has an axis of size 1 where the part has none.
Arrays grad_stack(const Array& y, const Array& dy) {
  Arrays gradients;
  for (std::size_t i = 0; i < y.node()->inputs.size(); ++i) {
    Array piece = slice(dy, static_cast<int>(axis_of(y)), static_cast<std::int64_t>(i), 1);
    gradients.push_back(reshape_like(piece, y.node()->inputs[i]));
  }
  return gradients;
}

// The gradient is dy, with zeros around it.
Arrays grad_slice(const Array& y, const Array& dy) {
  return {slice_grad(dy, y.node()->inputs[0], static_cast<int>(axis_of(y)),
                     y.node()->attributes.get<std::int64_t>("begin"))};
}

Arrays grad_slice_grad(const Array& y, const Array& dy) {
  const Array& piece = y.node()->inputs[0];
  int axis = static_cast<int>(axis_of(y));
  if (infer::unknown(piece.shape()[axis]))
    throw UnimplementedError(
        "the second derivative of a slice of unknown size; give slice() a size");
  return {slice(dy, axis, y.node()->attributes.get<std::int64_t>("begin"), piece.shape()[axis]),
          Array()};
}

// Only such concatenations come here: those of known sizes have slices for gradients.
Arrays grad_concat_grad(const Array&, const Array&) {
  throw UnimplementedError("the second derivative of a concat of parts of unknown size");
}

const OpDef kPiecesOps[] = {
    {"concat", 1, OpDef::kAny, "axis", infer_concat, grad_concat,
     OpFlags::kConcatenation | OpFlags::kJoin},
    {"stack", 1, OpDef::kAny, "axis", infer_stack, grad_stack, OpFlags::kJoin},
    {"slice", 1, 1, "axis begin size", infer_slice, grad_slice, OpFlags::kSlice},
    {"slice_grad", 2, 2, "axis begin", infer_slice_grad, grad_slice_grad, OpFlags::kNone,
     shape_of(1)},
    {"concat_grad", 2, OpDef::kAny, "axis index", infer_concat_grad, grad_concat_grad,
     OpFlags::kNone, shapes_from(1)},
};

const Array& first_part(std::string_view op, const std::vector<Array>& parts) {
  if (parts.empty()) throw InvalidArgumentError(str(op, ": no parts"));
  return parts[0];
}

}  // namespace

std::span<const OpDef> piece_ops() { return kPiecesOps; }

Array concat(const std::vector<Array>& parts, int axis) {
  std::int64_t normal = normalize_axis("concat", axis, first_part("concat", parts).rank());
  return record("concat", parts, {{"axis", normal}});
}
Array stack(const std::vector<Array>& parts, int axis) {
  std::int64_t normal = normalize_axis("stack", axis, first_part("stack", parts).rank() + 1);
  return record("stack", parts, {{"axis", normal}});
}
Array slice(const Array& x, int axis, std::int64_t begin, std::int64_t size) {
  std::int64_t normal = normalize_axis("slice", axis, x.rank());
  return record("slice", {x}, {{"axis", normal}, {"begin", begin}, {"size", size}});
}
std::vector<Array> split(const Array& x, const std::vector<std::int64_t>& sizes, int axis) {
  std::int64_t whole = x.shape()[normalize_axis("split", axis, x.rank())], begin = 0;
  for (std::int64_t size : sizes) {
    if (size < 0 || size > infer::kElementsMax)
      throw InvalidArgumentError(str("split: a piece of size ", size));
    begin += size;
  }
  if (begin != whole)
    throw InvalidArgumentError(
        str("split: the pieces fill ", begin, " of axis ", axis, " of ", x.type().to_string()));
  std::vector<Array> pieces;
  begin = 0;
  for (std::int64_t size : sizes) {
    pieces.push_back(slice(x, axis, begin, size));
    begin += size;
  }
  return pieces;
}
// As np.split: the pieces are equal, or it is an error.
std::vector<Array> split(const Array& x, int pieces, int axis) {
  std::int64_t whole = x.shape()[normalize_axis("split", axis, x.rank())];
  if (infer::unknown(whole))
    throw InvalidArgumentError(
        str("split: the size of axis ", axis, " of ", x.type().to_string(), " is unknown"));
  if (pieces < 1 || whole % pieces != 0)
    throw InvalidArgumentError(str("split: axis ", axis, " of ", x.type().to_string(), " has no ",
                                   pieces, " equal pieces"));
  return split(x, std::vector<std::int64_t>(static_cast<std::size_t>(pieces), whole / pieces),
               axis);
}
Array slice_grad(const Array& dy, const Array& like, int axis, std::int64_t begin) {
  std::int64_t normal = normalize_axis("slice_grad", axis, like.rank());
  return record("slice_grad", {dy, like}, {{"axis", normal}, {"begin", begin}});
}
Array concat_grad(const Array& dy, const std::vector<Array>& parts, int axis, int index) {
  std::vector<Array> inputs{dy};
  inputs.insert(inputs.end(), parts.begin(), parts.end());
  std::int64_t normal =
      normalize_axis("concat_grad", axis, first_part("concat_grad", parts).rank());
  return record("concat_grad", std::move(inputs),
                {{"axis", normal}, {"index", std::int64_t{index}}});
}

}  // namespace cairn
