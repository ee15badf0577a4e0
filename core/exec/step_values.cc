// The values of a run: where they lie, how they come to the device and leave it.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/exec/step.h"
#include "core/graph/op_def.h"
#include "core/tensor/bfloat16.h"

namespace cairn {

namespace {

// Strings lie in their tensor as objects, everything else as bytes.
const std::byte* address(const Tensor& tensor) {
  return tensor.dtype() == DType::kString
             ? reinterpret_cast<const std::byte*>(tensor.string_values().data())
             : tensor.raw();
}

}  // namespace

void Step::bind() {
  bound_ = &space_.bind(plan_, inputs_);
  arena_ = space_.arena(bound_->arena_bytes());
  space_.pointers.resize(plan_->values());
  for (std::size_t v = 0; v < plan_->values(); ++v) {
    std::int64_t offset = bound_->offset(static_cast<std::int32_t>(v));
    space_.pointers[v] = offset == BoundPlan::kOutside ? nullptr : arena_at(offset);
  }
  for (std::size_t v = 0; v < plan_->values(); ++v)
    if (space_.pointers[v] == nullptr && bound_->rows_of(static_cast<std::int32_t>(v)).within >= 0)
      space_.pointers[v] = place_within(static_cast<std::int32_t>(v));
  if (space_.on_host) place_updates();
  if (space_.rows != nullptr) lender_ = places_.lender();
  // A run that failed may have left some.
  space_.made.lookups.clear();
  space_.made.gathers.clear();
  if (lender_ != nullptr && !std::exchange(bound_->announced, true))
    space_.rows->announce(*lender_, plan_->bound, plan_->variable_uses);
  set_outside_values();
}

// Where the first of its rows lies within those of the larger value.
const std::byte* Step::place_within(std::int32_t value) const {
  const RowsWithin& rows = bound_->rows_of(value);
  return data(rows.within) +
         static_cast<std::size_t>(rows.begin) * dtype_bytes(bound_->stored_type(rows.within).dtype);
}

// Where the store wants them, if kernels can write there.
void Step::place_updates() {
  for (const BoundWave& wave : bound_->waves)
    for (const BoundUpdate& update : wave.updates) {
      if (node(update.node).attributes.get<bool>("sparse")) continue;
      const std::int32_t value = bound_->root(input(update.node, 0));
      if (bound_->offset(value) == BoundPlan::kOutside) continue;
      const TensorType& type = bound_->type(value);
      auto place = places_.update_place(
          stored_variable(update.node),
          static_cast<std::size_t>(type.shape.elements()) * dtype_bytes(type.dtype));
      if (place == nullptr) continue;
      space_.pointers[static_cast<std::size_t>(value)] = place.get();
      placed_.emplace_back(value, std::move(place));
    }
}

// The tensor of a value that came with the run or the graph; nullptr: computed or read.
const Tensor* Step::outside_tensor(std::int32_t value) const {
  std::int32_t i = plan_->producer[static_cast<std::size_t>(value)];
  const Node& n = node(i);
  if (n.op->effect == Effect::kArgument)
    return &inputs_.arguments[static_cast<std::size_t>(n.attributes.get<std::int64_t>("index"))];
  if (n.op->effect == Effect::kAdvance) {
    const auto& elements =
        inputs_.elements[static_cast<std::size_t>(n.attributes.get<std::int64_t>("iterator"))];
    const Element& element =
        elements[static_cast<std::size_t>(plan_->advance_number[static_cast<std::size_t>(i)])];
    return &element[static_cast<std::size_t>(value -
                                             plan_->value_base[static_cast<std::size_t>(i)])];
  }
  if (n.op->has(OpFlags::kStepKey)) return &step_key_;
  return n.op->has(OpFlags::kConstant) ? &n.attributes.get<Tensor>("value") : nullptr;
}

void Step::set_outside_values() {
  if (!space_.on_host && !bound_->constants_sent) send_constants();
  for (std::int32_t v = 0; v < static_cast<std::int32_t>(plan_->values()); ++v) {
    std::int32_t i = plan_->producer[static_cast<std::size_t>(v)];
    if (!plan_->live(i)) continue;
    if (node(i).op->has(OpFlags::kStepKey)) make_step_key();
    const Tensor* const tensor = outside_tensor(v);
    if (tensor == nullptr) continue;
    if (!space_.on_host && lies_as_constant(v))
      space_.pointers[static_cast<std::size_t>(v)] =
          bound_->constants.get() + bound_->constant_offsets.at(v);
    else
      give(v, *tensor);
  }
}

bool Step::lies_as_constant(std::int32_t value) const {
  const std::int32_t i = plan_->producer[static_cast<std::size_t>(value)];
  return plan_->live(i) && node(i).op->has(OpFlags::kConstant) &&
         bound_->type(value).dtype != DType::kString;
}

// Once for a bound plan.
void Step::send_constants() {
  constexpr std::size_t kAlign = 64;
  std::size_t bytes = 0;
  for (std::int32_t v = 0; v < static_cast<std::int32_t>(plan_->values()); ++v) {
    if (!lies_as_constant(v)) continue;
    bound_->constant_offsets[v] = bytes;
    bytes += (outside_tensor(v)->bytes() + kAlign - 1) / kAlign * kAlign;
  }
  bound_->constants_sent = true;
  if (bytes == 0) return;
  bound_->constants = space_.device.allocate(bytes);
  for (const auto& [value, offset] : bound_->constant_offsets) {
    const Tensor& tensor = *outside_tensor(value);
    space_.device.copy(Device::Direction::kIn, bound_->constants.get() + offset, tensor.raw(),
                       tensor.bytes());
  }
}

// A value that is at hand: kernels read it where it lies, or, if the device cannot, a copy.
void Step::give(std::int32_t value, const Tensor& tensor) {
  if (space_.on_host || tensor.dtype() == DType::kString)
    space_.pointers[static_cast<std::size_t>(value)] = address(tensor);
  else if (bound_->stored_type(value).dtype != tensor.dtype())
    give_rounded(value, tensor);
  else
    space_.device.copy_in_kept(arena_at(bound_->offset(value)), tensor.raw(), tensor.bytes(),
                               tensor.owner());
}

// float32 that lies as bfloat16 on the device.
void Step::give_rounded(std::int32_t value, const Tensor& tensor) {
  const std::span<const float> wide = tensor.values<float>();
  const std::size_t bytes = wide.size() * dtype_bytes(DType::kBfloat16);
  space_.staging.resize(std::max(space_.staging.size(), bytes));
  narrow_to_bfloat16(wide.data(), wide.size(), space_.staging.data());
  space_.device.copy(Device::Direction::kIn, arena_at(bound_->offset(value)), space_.staging.data(),
                     bytes);
}

// A retry has the closure's step and sequence number again, whichever worker or lane it comes to.
void Step::make_step_key() {
  std::int64_t step = context_.global_step >= 0 ? context_.global_step
                                                : -1 - static_cast<std::int64_t>(context_.closure);
  step_key_ = Tensor::of<std::int64_t>({2}, std::array<std::int64_t, 2>{step, context_.replica});
}

// ---- outputs ----

void Step::collect_outputs() {
  outputs_.clear();
  outputs_.reserve(plan_->graph.outputs.size());
  for (ValueRef ref : plan_->graph.outputs) outputs_.push_back(output(plan_->value(ref)));
}

// What leaves the run owns its memory: the arena is used again, and a store may want its rows back.
// From a device with memory of its own the copy is only begun.
Tensor Step::output(std::int32_t value) {
  const TensorType& type = bound_->type(value);
  if (const Tensor* tensor = outside_tensor(bound_->root(value)))
    return tensor->reshaped(type.shape);
  if (type.dtype == DType::kString) {
    const auto* strings = reinterpret_cast<const std::string*>(data(value));
    return Tensor::strings(type.shape,
                           std::vector<std::string>(strings, strings + type.shape.elements()));
  }
  Tensor made(type.dtype, type.shape);
  if (space_.on_host)
    space_.device.copy(Device::Direction::kOut, made.mutable_raw(), data(value), made.bytes());
  else if (const std::byte* brought = space_.host.find(bound_->root(value)))
    std::memcpy(made.mutable_raw(), brought, made.bytes());
  else
    space_.host.begin_into(made.mutable_raw(), data(value), made.bytes());
  return made;
}

}  // namespace cairn
