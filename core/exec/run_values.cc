#include "core/exec/run_values.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

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

RunValues::RunValues(const std::shared_ptr<const Plan>& plan, Workspace::State& space,
                     StepMemory& memory, const StepContext& context, RunInputs&& inputs)
    : plan_(plan), space_(space), memory_(memory), context_(context), inputs_(std::move(inputs)) {}

void RunValues::bind() {
  bound_ = &space_.bind(plan_, inputs_);
  arena_ = space_.arena(bound_->arena_bytes());
  const auto values = static_cast<std::int32_t>(plan_->values());
  space_.pointers.resize(plan_->values());
  for (std::int32_t v = 0; v < values; ++v) {
    const std::int64_t offset = bound_->offset(v);
    lies_at(v, offset == BoundPlan::kOutside ? nullptr : arena_at(offset));
  }
  for (std::int32_t v = 0; v < values; ++v)
    if (space_.pointers[static_cast<std::size_t>(v)] == nullptr && bound_->rows_of(v).within >= 0)
      lies_at(v, place_within(v));
  if (space_.on_host) place_updates();
  set_outside_values();
}

void RunValues::let_go() {
  for (BoundWave& wave : bound_->waves) {
    for (Read& read : wave.reads) read.value = {};
    for (AllReduceBuffer& reduction : wave.reductions) reduction = {};
  }
  space_.updates.clear();
  space_.host.clear();
  placed_.clear();
}

const GraphVariable& RunValues::variable_of(std::int32_t i) const {
  return plan_->graph
      .variables[static_cast<std::size_t>(node(i).attributes.get<std::int64_t>("variable"))];
}

VariableId RunValues::stored_variable(std::int32_t i) const {
  return plan_->bound[static_cast<std::size_t>(node(i).attributes.get<std::int64_t>("variable"))];
}

ReadAt RunValues::read_at(std::size_t wave, std::size_t group) const {
  BoundWave& bound = bound_->waves[wave];
  return {plan_->waves[wave].reads[group], bound.reads[group], bound.ids[group], bound.here[group]};
}

std::optional<ReadAt> RunValues::ids_source(std::int32_t update) const {
  const UpdateIds& source = plan_->update_ids[static_cast<std::size_t>(update)];
  if (source.wave < 0) return std::nullopt;
  return read_at(static_cast<std::size_t>(source.wave), static_cast<std::size_t>(source.group));
}

std::span<const std::int32_t> RunValues::id_readers(std::int32_t update) const {
  const std::optional<ReadAt> source = ids_source(update);
  if (!source) return {};
  return source->group.nodes;
}

bool RunValues::has_ids_of_pull(std::int32_t update) const {
  const std::optional<ReadAt> source = ids_source(update);
  return source && !source->here.served;
}

// ---- in the device's memory ----

const std::byte* RunValues::place_within(std::int32_t value) const {
  const RowsWithin& rows = bound_->rows_of(value);
  return data(rows.within) +
         static_cast<std::size_t>(rows.begin) * dtype_bytes(bound_->stored_type(rows.within).dtype);
}

const std::shared_ptr<std::byte>& RunValues::owner_of(std::int32_t value) const {
  for (const auto& [placed, place] : placed_)
    if (placed == bound_->root(value)) return place;
  return arena_;
}

// Where the store wants them, if kernels can write there.
void RunValues::place_updates() {
  for (const BoundWave& wave : bound_->waves)
    for (const BoundUpdate& update : wave.updates) {
      if (node(update.node).attributes.get<bool>("sparse")) continue;
      const std::int32_t value = bound_->root(input(update.node, 0));
      if (bound_->offset(value) == BoundPlan::kOutside) continue;
      auto place =
          memory_.update_place(stored_variable(update.node), bytes_of(bound_->type(value)));
      if (place == nullptr) continue;
      lies_at(value, place.get());
      placed_.emplace_back(value, std::move(place));
    }
}

void RunValues::set_outside_values() {
  if (!space_.on_host && !bound_->constants_sent) send_constants();
  for (std::int32_t v = 0; v < static_cast<std::int32_t>(plan_->values()); ++v) {
    const std::int32_t i = plan_->producer[static_cast<std::size_t>(v)];
    if (!plan_->live(i)) continue;
    if (node(i).op->has(OpFlags::kStepKey)) make_step_key();
    const Tensor* const tensor = outside_tensor(v);
    if (tensor == nullptr) continue;
    if (!space_.on_host && lies_as_constant(v))
      lies_at(v, bound_->constants.get() + bound_->constant_offsets.at(v));
    else
      give(v, *tensor);
  }
}

bool RunValues::lies_as_constant(std::int32_t value) const {
  return plan_->live(plan_->producer[static_cast<std::size_t>(value)]) &&
         producer(value).op->has(OpFlags::kConstant) && bound_->type(value).dtype != DType::kString;
}

// Once for a bound plan.
void RunValues::send_constants() {
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

void RunValues::give(std::int32_t value, const Tensor& tensor) {
  if (space_.on_host || tensor.dtype() == DType::kString)
    lies_at(value, address(tensor));
  else if (bound_->stored_type(value).dtype != tensor.dtype())
    give_rounded(value, tensor);
  else
    space_.device.copy_in_kept(own_place(value), tensor.raw(), tensor.bytes(), tensor.owner());
}

// float32 that lies as bfloat16 on the device.
void RunValues::give_rounded(std::int32_t value, const Tensor& tensor) {
  const std::span<const float> wide = tensor.values<float>();
  const std::size_t bytes = wide.size() * dtype_bytes(DType::kBfloat16);
  std::byte* const rounded = staging(bytes);
  narrow_to_bfloat16(wide.data(), wide.size(), rounded);
  space_.device.copy(Device::Direction::kIn, own_place(value), rounded, bytes);
}

std::byte* RunValues::staging(std::size_t bytes) {
  space_.staging.resize(std::max(space_.staging.size(), bytes));
  return space_.staging.data();
}

// A retry has the closure's step and sequence number again, whichever worker or lane it comes to.
void RunValues::make_step_key() {
  std::int64_t step = context_.global_step >= 0 ? context_.global_step
                                                : -1 - static_cast<std::int64_t>(context_.closure);
  step_key_ = Tensor::of<std::int64_t>({2}, std::array<std::int64_t, 2>{step, context_.replica});
}

// ---- in the host's memory ----

const Tensor* RunValues::outside_tensor(std::int32_t value) const {
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

void RunValues::bring(std::int32_t value) {
  const TensorType& type = bound_->type(value);
  if (space_.on_host || type.dtype == DType::kString) return;
  if (outside_tensor(bound_->root(value)) != nullptr) return;
  space_.host.begin(bound_->root(value), data(value), bytes_of(type));
}

void RunValues::wait_for_copies() {
  if (space_.on_host) return;
  if (inputs_.next) space_.device.send_ahead(std::exchange(inputs_.next, {})());
  space_.host.finish();
}

const std::byte* RunValues::host_view(std::int32_t value) {
  if (space_.on_host || bound_->type(value).dtype == DType::kString) return data(value);
  if (const Tensor* tensor = outside_tensor(bound_->root(value))) return tensor->raw();
  bring(value);
  wait_for_copies();
  return space_.host.find(bound_->root(value));
}

float RunValues::learning_rate(std::int32_t update) {
  float rate = 0;
  std::memcpy(&rate, host_view(input(update, node(update).inputs.size() - 1)), sizeof rate);
  return rate;
}

Tensor RunValues::memory_for_update(std::int32_t update, const TensorType& type) {
  auto place = memory_.update_place(stored_variable(update), bytes_of(type));
  if (place == nullptr) return Tensor(type.dtype, type.shape);
  const std::byte* const at = place.get();
  return Tensor::borrowed(type.dtype, type.shape, at, std::move(place));
}

Tensor RunValues::output(std::int32_t value) {
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
