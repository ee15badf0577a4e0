// Rows of one value that lie within those of a larger one, on a device with memory of its own.
#include <algorithm>

#include "core/exec/bind.h"
#include "core/graph/op_def.h"

namespace cairn {
namespace {

// In bytes. A device reads rows in vectors of this size, so they have to begin at multiples of it.
constexpr std::int64_t kRowAlignment = 16;

// How many elements stand before one another along the axes from `axis` on.
std::int64_t run_of(const Shape& shape, int axis) {
  std::int64_t elements = 1;
  for (int i = axis; i < shape.rank(); ++i) elements *= shape[i];
  return elements;
}

}  // namespace

// Where lookups were stacked, the gradient of each is a slice of the stack's gradient, and only the
// update of its table reads that slice. On a device the update can read the rows where they lie.
void Binder::find_rows_within(const Wave& wave) {
  for (Instruction& one : into_->compute) {
    const Node& n = node(one.node);
    if (!n.op->has(OpFlags::kSlice) || number(n, "axis") != 1) continue;
    const std::int32_t place = only_update(one.node, wave);
    if (place < 0) continue;
    const Shape& whole = input_type(n, 0).shape;
    const std::int64_t width = whole.row_elements();
    const std::int64_t begin = whole[1] > 0 ? number(n, "begin") * (width / whole[1]) : 0;
    const auto bytes = static_cast<std::int64_t>(dtype_bytes(input_type(n, 0).dtype));
    if (begin * bytes % kRowAlignment != 0 || width * bytes % kRowAlignment != 0) continue;
    one.for_update = place;
    into_->updates[static_cast<std::size_t>(place)].rows = {plan_.value(n.inputs[0]), begin, width};
  }
}

// The place among the wave's updates of the update by ids that is the only reader of the slice,
// directly or through a reshape that keeps the number of rows; -1: there is none.
std::int32_t Binder::only_update(std::int32_t slice, const Wave& wave) const {
  std::int32_t value = plan_.value({slice, 0});
  const std::int64_t rows = bound_.type(value).shape[0];
  for (;;) {
    const std::int32_t reader = consumer_[static_cast<std::size_t>(value)];
    if (reader < 0) return -1;
    const Node& n = node(reader);
    if (n.op->effect == Effect::kUpdate) {
      const auto found = std::ranges::find(wave.updates, reader);
      const bool by_ids = n.attributes.get<bool>("sparse") && plan_.value(n.inputs[1]) == value;
      const bool whole_rows =
          bound_.type(value).shape.rank() > 0 && bound_.type(value).shape[0] == rows;
      return found != wave.updates.end() && by_ids && whole_rows
                 ? static_cast<std::int32_t>(found - wave.updates.begin())
                 : -1;
    }
    const std::int32_t next = plan_.value({reader, 0});
    if (bound_.root(next) != bound_.root(value)) return -1;
    value = next;
  }
}

// Lookups, and rows of a given distance that the device computes, are written where they will
// stand, if a join puts them beside one another and is their only reader. Lookups that the host
// makes all the same (Step::expand) lie by themselves and are copied there.
void Binder::find_rows_into() {
  bound_.within_.assign(plan_.values(), {});
  if (on_host_) return;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan_.graph.nodes.size()); ++i) {
    if (!plan_.live(i)) continue;
    if (node(i).op->has(OpFlags::kJoin)) place_parts(i);
    if (node(i).op->has(OpFlags::kSlice)) read_within(i);
  }
}

void Binder::place_parts(std::int32_t join) {
  const Node& n = node(join);
  const std::int32_t whole = plan_.value({join, 0});
  const int axis = number(n, "axis");
  const std::int64_t stride = run_of(bound_.type(whole).shape, axis);
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < n.inputs.size(); ++k) {
    const std::int64_t run = run_of(input_type(n, k).shape, axis);
    const std::int32_t part = plan_.value(n.inputs[k]);
    if (consumer_[static_cast<std::size_t>(part)] == join &&
        (is_lookup_of(part, run) || makes_rows_of(part, run, whole)))
      bound_.within_[static_cast<std::size_t>(part)] = {whole, begin, stride};
    begin += run;
  }
}

// Whether the value is rows of a variable, each of `run` elements.
bool Binder::is_lookup_of(std::int32_t value, std::int64_t run) const {
  const Node& n = node(plan_.producer[static_cast<std::size_t>(value)]);
  if (n.op->effect != Effect::kRead || n.inputs.empty()) return false;
  const TensorType& table =
      plan_.graph.variables[static_cast<std::size_t>(number(n, "variable"))].type;
  return table.dtype != DType::kString && table.shape.row_elements() == run;
}

// Whether a kernel makes the value, in rows of `run` elements, and can do so within `whole`.
bool Binder::makes_rows_of(std::int32_t value, std::int64_t run, std::int32_t whole) const {
  const Node& n = node(plan_.producer[static_cast<std::size_t>(value)]);
  const TensorType made = bound_.stored_type(value);
  return device_.takes_rows_within(*n.op) && made.shape.rank() == 2 && made.shape[1] == run &&
         made.dtype == bound_.stored_type(whole).dtype;
}

// A slice that is read by such a kernel alone is read where it lies, and not computed.
void Binder::read_within(std::int32_t slice) {
  const Node& n = node(slice);
  const std::int32_t value = plan_.value({slice, 0}), whole = plan_.value(n.inputs[0]),
                     reader = consumer_[static_cast<std::size_t>(value)];
  const TensorType made = bound_.stored_type(value);
  if (reader < 0 || !device_.takes_rows_within(*node(reader).op) ||
      plan_.value(node(reader).inputs[0]) != value || number(n, "axis") != 1 ||
      made.shape.rank() != 2 || made.dtype != bound_.stored_type(whole).dtype)
    return;
  bound_.within_[static_cast<std::size_t>(value)] = {whole, number(n, "begin"),
                                                     input_type(n, 0).shape[1]};
}

// Whether the value has no memory of its own.
bool Binder::lies_within(std::int32_t value) const {
  return bound_.rows_of(value).within >= 0 &&
         !is_read(node(plan_.producer[static_cast<std::size_t>(value)]));
}

}  // namespace cairn
