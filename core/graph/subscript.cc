// Subscripts of arrays and of variables, expressed by operations that there are: gather, slice and
// reshape to read, rows by id to write. So whatever a strategy does with rows, it does with these.
#include "core/graph/subscript.h"

#include <algorithm>
#include <numeric>

#include "core/graph/ops.h"
#include "core/graph/variable.h"

namespace cairn {
namespace {

template <typename... T>
[[noreturn]] void fail(const Shape& shape, const T&... why) {
  throw InvalidArgumentError(str("subscripts of ", shape.to_string(), ": ", why...));
}

AxisSelection everything(std::int64_t size) { return {.count = size, .all = true}; }

AxisSelection one_element(const Shape& shape, int axis, std::int64_t index) {
  const std::int64_t size = shape[axis];
  const std::int64_t from_start = index < 0 ? index + size : index;
  if (from_start < 0 || from_start >= size)
    fail(shape, "index ", index, " is out of bounds for axis ", axis, ", which has ", size,
         " elements");
  return {.start = from_start, .count = 1};
}

// Python's slice.indices(). A bound that is cut off at the end of a backward walk is -1, which is
// where that walk stops.
AxisSelection sliced(const Shape& shape, int axis, const Slice& slice) {
  const std::int64_t size = shape[axis], step = slice.step.value_or(1);
  if (step == 0) fail(shape, "the step of a slice cannot be 0");
  const std::int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? size - 1 : size;
  auto bound = [&](const std::optional<std::int64_t>& given, std::int64_t missing) {
    if (!given) return missing;
    return std::clamp(*given < 0 ? *given + size : *given, lowest, highest);
  };
  const std::int64_t start = bound(slice.start, step < 0 ? highest : lowest);
  const std::int64_t stop = bound(slice.stop, step < 0 ? lowest : highest);
  const std::int64_t way = step < 0 ? start - stop : stop - start;
  // Without negating the step, whose lowest value has no positive.
  const std::int64_t more = way <= 0 ? 0 : step < 0 ? (1 - way) / step : (way - 1) / step;
  AxisSelection taken{.start = start, .step = step, .count = way <= 0 ? 0 : more + 1};
  taken.all = taken.start == 0 && step == 1 && taken.count == size;
  return taken;
}

AxisSelection masked(const Shape& shape, int axis, const Tensor& mask) {
  const TensorType wanted{DType::kBool, Shape{shape[axis]}};
  if (!mask.defined() || mask.type() != wanted)
    fail(shape, "a mask of axis ", axis, " is ", wanted.to_string(), ", not ",
         mask.defined() ? mask.type().to_string() : "undefined");
  AxisSelection taken{.listed = std::vector<std::int64_t>()};
  const auto values = mask.values<bool>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i]) taken.listed->push_back(static_cast<std::int64_t>(i));
  taken.count = static_cast<std::int64_t>(taken.listed->size());
  return taken;
}

template <typename T>
bool is(const Subscript& subscript) {
  return std::holds_alternative<T>(subscript.what());
}

bool takes_all(const Subscript& subscript) {
  const Slice* slice = std::get_if<Slice>(&subscript.what());
  return slice != nullptr && !slice->start && !slice->stop && slice->step.value_or(1) == 1;
}

AxisSelection of_axis(const Shape& shape, int axis, const Subscript& subscript) {
  if (takes_all(subscript)) return everything(shape[axis]);
  if (shape[axis] == Shape::kUnknown)
    fail(shape, "the size of axis ", axis, " is unknown, so that only all of it can be taken");
  if (const auto* index = std::get_if<std::int64_t>(&subscript.what()))
    return one_element(shape, axis, *index);
  if (const auto* slice = std::get_if<Slice>(&subscript.what())) return sliced(shape, axis, *slice);
  return masked(shape, axis, std::get<Tensor>(subscript.what()));
}

Array constant_ids(const std::vector<std::int64_t>& ids) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(ids.size())}, ids);
}

Array taken(const Array& x, int axis, const AxisSelection& of) {
  if (of.all) return x;
  if (!of.listed && of.step == 1) return slice(x, axis, of.start, of.count);
  return gather(x, constant_ids(of.elements()), axis);
}

// At most one dimension of a result may be unknown, which is what reshape() can infer.
Array shaped(const Array& x, const Shape& shape) {
  return x.shape() == shape ? x : reshape(x, shape);
}

// ---- parts of rows ----

// The places, within a row, of what the selection takes of it.
std::vector<std::int64_t> places_in_row(const Shape& shape, const Selection& selection) {
  std::vector<std::int64_t> places{0};
  for (int axis = 1; axis < shape.rank(); ++axis) {
    std::vector<std::int64_t> deeper;
    for (std::int64_t place : places)
      for (std::int64_t i : selection.axes[static_cast<std::size_t>(axis)].elements())
        deeper.push_back(place * shape[axis] + i);
    places = std::move(deeper);
  }
  return places;
}

bool takes_whole_rows(const Selection& selection) {
  return std::all_of(selection.axes.begin() + 1, selection.axes.end(),
                     [](const AxisSelection& axis) { return axis.all; });
}

// `rows`, [n, elements of a row], with `values`, [n, places], at the places.
Array with_places(const Array& rows, const std::vector<std::int64_t>& places, const Array& values) {
  return transpose(
      scatter_update(transpose(rows, {1, 0}), constant_ids(places), transpose(values, {1, 0})),
      {1, 0});
}

}  // namespace

std::vector<std::int64_t> AxisSelection::elements() const {
  if (listed) return *listed;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = start + static_cast<std::int64_t>(i) * step;
  return ids;
}

Selection select(const Shape& shape, const std::vector<Subscript>& subscripts) {
  const auto new_axes =
      static_cast<std::size_t>(std::count_if(subscripts.begin(), subscripts.end(), is<NewAxis>));
  const auto ellipses = std::count_if(subscripts.begin(), subscripts.end(), is<Ellipsis>);
  const auto rank = static_cast<std::size_t>(shape.rank());
  const std::size_t named = subscripts.size() - new_axes - static_cast<std::size_t>(ellipses);
  if (ellipses > 1) fail(shape, "an ellipsis may stand only once");
  if (named > rank) fail(shape, named, " subscripts for ", rank, " axes");
  Selection selection;
  std::vector<std::int64_t> dims;
  auto next_axis = [&] { return static_cast<int>(selection.axes.size()); };
  auto take_rest = [&](std::size_t count) {
    for (; count > 0; --count) {
      dims.push_back(shape[next_axis()]);
      selection.axes.push_back(everything(dims.back()));
    }
  };
  for (const Subscript& each : subscripts) {
    if (is<NewAxis>(each)) {
      dims.push_back(1);
    } else if (is<Ellipsis>(each)) {
      take_rest(rank - named);
    } else {
      selection.axes.push_back(of_axis(shape, next_axis(), each));
      if (!is<std::int64_t>(each)) dims.push_back(selection.axes.back().count);
    }
  }
  take_rest(rank - selection.axes.size());
  selection.shape = Shape(std::move(dims));
  return selection;
}

Array subscript(const Array& x, const std::vector<Subscript>& subscripts) {
  const Selection selection = select(x.shape(), subscripts);
  Array y = x;
  for (std::size_t axis = 0; axis < selection.axes.size(); ++axis)
    y = taken(y, static_cast<int>(axis), selection.axes[axis]);
  return shaped(y, selection.shape);
}

VariablePart Variable::at(const std::vector<Subscript>& subscripts) const {
  if (!defined()) throw FailedPreconditionError("the Variable is empty: no strategy has made it");
  return {*this, select(shape(), subscripts)};
}

// Rows are asked for by id, so that only they travel.
Array VariablePart::read() const {
  const auto& axes = selection_.axes;
  Array y = axes.empty() || axes[0].all ? variable_.read()
                                        : variable_.gather(constant_ids(axes[0].elements()));
  for (std::size_t axis = 1; axis < axes.size(); ++axis)
    y = taken(y, static_cast<int>(axis), axes[axis]);
  return shaped(y, selection_.shape);
}

// The value as it is laid out in rows: [rows taken, elements of each].
Array VariablePart::rows_of(const Array& value) const {
  if (!value.defined()) throw InvalidArgumentError("an undefined Array is assigned to a part");
  const Array typed = value.beside(variable_.spec().dtype);
  if (typed.shape() != selection_.shape)
    throw InvalidArgumentError(str("the part of the variable \"", variable_.name(), "\" is ",
                                   selection_.shape.to_string(), ", the value is ",
                                   typed.type().to_string()));
  const std::int64_t rows = selection_.axes[0].count;
  const std::int64_t each =
      std::accumulate(selection_.axes.begin() + 1, selection_.axes.end(), std::int64_t{1},
                      [](std::int64_t n, const AxisSelection& axis) { return n * axis.count; });
  return reshape(typed, {rows, each});
}

void VariablePart::assign(const Array& value) const {
  if (selection_.axes.empty()) return variable_.assign(shaped(value, {}));
  Array rows = rows_of(value);
  if (selection_.shape.elements() == 0) return;
  const auto& first = selection_.axes[0];
  const Shape& shape = variable_.shape();
  const Array ids = constant_ids(first.elements());
  if (!takes_whole_rows(selection_)) {
    const Array old = first.all ? variable_.read() : variable_.gather(ids);
    rows = with_places(reshape(old, {first.count, variable_.spec().dim()}),
                       places_in_row(shape, selection_), rows);
  }
  rows = reshape(rows, shape.with_dim(0, first.count));
  first.all ? variable_.assign(rows) : variable_.scatter_update(ids, rows);
}

// Zeros are added to the rest of a row, which changes nothing: there is no need to read it.
void VariablePart::add(const Array& value, RuleKind kind) const {
  const bool adds = kind == RuleKind::kAssignAdd;
  if (selection_.axes.empty())
    return adds ? variable_.assign_add(shaped(value, {})) : variable_.assign_sub(shaped(value, {}));
  Array rows = rows_of(value);
  if (selection_.shape.elements() == 0) return;
  const auto& first = selection_.axes[0];
  const Shape& shape = variable_.shape();
  if (!takes_whole_rows(selection_)) {
    const Array nothing =
        Tensor::zeros(variable_.spec().dtype, {first.count, variable_.spec().dim()});
    rows = with_places(nothing, places_in_row(shape, selection_), rows);
  }
  rows = reshape(rows, shape.with_dim(0, first.count));
  if (first.all) return adds ? variable_.assign_add(rows) : variable_.assign_sub(rows);
  const Array ids = constant_ids(first.elements());
  adds ? variable_.scatter_add(ids, rows) : variable_.scatter_sub(ids, rows);
}

void VariablePart::assign_add(const Array& value) const { add(value, RuleKind::kAssignAdd); }
void VariablePart::assign_sub(const Array& value) const { add(value, RuleKind::kAssignSub); }

// ---- batches of ids ----

// The variable as one list of rows, b * n of them. An id beyond n would otherwise name a row of the
// next batch; looked up among [0, n) first, it is refused when it runs.
void Variable::batch_scatter_update(const Array& ids, const Array& rows) const {
  if (!defined()) throw FailedPreconditionError("the Variable is empty: no strategy has made it");
  const Shape& shape = this->shape();
  const int batches = ids.rank() - 1;
  if (batches == 0) return scatter_update(ids, rows);
  bool fits = batches > 0 && batches < shape.rank();
  std::int64_t before = 1;
  for (int i = 0; fits && i < batches; before *= shape[i++]) fits = ids.shape()[i] == shape[i];
  if (!fits)
    throw InvalidArgumentError(str("batch_scatter_update of the variable \"", name(), "\", ",
                                   shape.to_string(), ": its leading dimensions are not those of ",
                                   "the ids, ", ids.type().to_string()));
  const std::int64_t n = shape[batches], each = ids.shape()[batches];
  std::vector<std::int64_t> all(static_cast<std::size_t>(n)), starts;
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t b = 0; b < before; ++b) starts.push_back(b * n);
  const Array checked = cairn::gather(constant_ids(all), reshape(ids, {before, each}));
  const Array flat = reshape(checked + reshape(constant_ids(starts), {before, 1}), {before * each});
  std::vector<std::int64_t> dims{before * n};
  dims.insert(dims.end(), shape.dims().begin() + batches + 1, shape.dims().end());
  const Shape listed(dims);
  const Array changed = cairn::scatter_update(reshape(read(), listed), flat,
                                              reshape(rows, listed.with_dim(0, before * each)));
  assign(reshape(changed, shape));
}

}  // namespace cairn
