#include "core/exec/bind.h"

#include <algorithm>

#include "core/graph/infer.h"
#include "core/graph/op_def.h"

namespace cairn {

void Binder::bind() {
  infer_all();
  find_roots();
  std::size_t nodes = plan_.graph.nodes.size();
  absorbed_into_.assign(nodes, -1);
  product_of_.assign(nodes, -1);
  fused_nodes_.assign(nodes, 1);
  find_consumers();
  for (const Wave& wave : plan_.waves) mark_absorbed(wave);
  find_narrow();
  find_rows_into();
  for (const Wave& wave : plan_.waves) emit_wave(wave);
  place();
}

// The types as they are in this run, where tracing knew only part of the shapes.
std::vector<TensorType> Binder::input_types(const Node& n) const {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) types.push_back(input_type(n, i));
  return types;
}

// The inputs' types as they lie in memory. Inputs of which only the shape matters keep their types.
std::vector<TensorType> Binder::stored_input_types(const Node& n) const {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < n.inputs.size(); ++i)
    types.push_back(n.op->needs_shape_only(i) ? input_type(n, i)
                                              : bound_.stored_type(plan_.value(n.inputs[i])));
  return types;
}

// Tracing takes two unknown dimensions that meet in an elementwise operation for equal, and its
// gradients rest on that.
void Binder::check_unknown_dims(const Node& n) const {
  const Shape& first = input_type(n, 0).shape;
  for (std::size_t k = 1; k < n.inputs.size(); ++k) {
    const Shape& other = input_type(n, k).shape;
    for (int back = 1; back <= std::min(first.rank(), other.rank()); ++back) {
      int a = first.rank() - back, b = other.rank() - back;
      bool unknown = plan_.graph.type(n.inputs[0]).shape[a] == Shape::kUnknown &&
                     plan_.graph.type(n.inputs[k]).shape[b] == Shape::kUnknown;
      if (unknown && first[a] != other[b])
        throw InvalidArgumentError(str(signature_text(*n.op, input_types(n)),
                                       ": dimensions unknown when traced, ", first[a], " and ",
                                       other[b], ", must be equal when run (see broadcast_like)"));
    }
  }
}

std::vector<TensorType> Binder::infer(std::int32_t i) const {
  const Node& n = node(i);
  std::vector<TensorType> subject;
  switch (n.op->effect) {
    case Effect::kArgument:
      return {inputs_.arguments[static_cast<std::size_t>(number(n, "index"))].type()};
    case Effect::kAdvance:
      for (const Tensor& column :
           inputs_
               .elements[static_cast<std::size_t>(number(n, "iterator"))][static_cast<std::size_t>(
                   plan_.advance_number[static_cast<std::size_t>(i)])])
        subject.push_back(column.type());
      return subject;
    case Effect::kRead:
    case Effect::kUpdate:
      subject.push_back(
          plan_.graph.variables[static_cast<std::size_t>(number(n, "variable"))].type);
      break;
    case Effect::kNone:
    case Effect::kAllReduce: break;
  }
  try {
    if (n.inputs.size() > 1 && is_elementwise(n)) check_unknown_dims(n);
    std::vector<TensorType> types = infer_types(*n.op, {input_types(n), n.attributes, subject});
    // unknown dimensions now have the size of what came
    for (const TensorType& type : types) infer::check_size(type.shape);
    return types;
  } catch (const InvalidArgumentError& error) {
    fail_at(plan_.graph, i, Code::kInvalidArgument, error.what());
  }
}

// The same rules as in tracing run again, on the shapes that came: every dimension is known
// afterwards.
void Binder::infer_all() {
  bound_.types_.resize(plan_.values());
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan_.graph.nodes.size()); ++i) {
    if (!plan_.live(i)) continue;
    std::vector<TensorType> types = infer(i);
    for (std::size_t o = 0; o < types.size(); ++o) {
      CAIRN_CHECK(types[o].shape.known(), "node ", i, " (", node(i).op->name, ") has the type ",
                  types[o].to_string(), " in a run");
      bound_.types_[static_cast<std::size_t>(plan_.value_base[static_cast<std::size_t>(i)]) + o] =
          std::move(types[o]);
    }
  }
}

// A value that lies in another one's memory, as an alias or reduced in place, has that one's root.
// Its input was numbered before, so a single step leads there.
void Binder::find_roots() {
  bound_.roots_.resize(plan_.values());
  for (std::size_t v = 0; v < plan_.values(); ++v) {
    bound_.roots_[v] = static_cast<std::int32_t>(v);
    std::int32_t i = plan_.producer[v];
    const Node& n = node(i);
    if (!plan_.live(i) || n.inputs.empty()) continue;
    const bool reduction = n.op->effect == Effect::kAllReduce;
    if (!reduction && !is_alias(n, input_type(n, 0).dtype)) continue;
    const auto output =
        static_cast<std::int32_t>(v) - plan_.value_base[static_cast<std::size_t>(i)];
    const std::int32_t in = plan_.value(n.inputs[static_cast<std::size_t>(output)]);
    if (!plan_.reduces(n) || (n.op->has(OpFlags::kInPlace) && gives_way(in)))
      bound_.roots_[v] = bound_.root(in);
  }
}

// May its only reader write over it? Not if it lies outside of the arena, or is another value's
// memory.
bool Binder::gives_way(std::int32_t value) const {
  const Node& n = node(plan_.producer[static_cast<std::size_t>(value)]);
  const bool gathered = n.op->effect == Effect::kRead && !n.inputs.empty();
  return plan_.uses[static_cast<std::size_t>(value)] == 1 && bound_.root(value) == value &&
         (gathered || (n.op->effect == Effect::kNone && !is_given(n)));
}

// ---- instructions ----

void Binder::emit_wave(const Wave& wave) {
  bound_.waves.emplace_back();
  into_ = &bound_.waves.back();
  into_->ids.resize(wave.reads.size());
  into_->reads.resize(wave.reads.size());
  into_->here.resize(wave.reads.size());
  for (std::int32_t i : wave.compute)
    if (absorbed_into_[static_cast<std::size_t>(i)] < 0) emit(i);
  for (std::int32_t i : wave.reductions) emit_reduction(i);
  for (std::int32_t i : wave.updates) {
    into_->updates.emplace_back();
    into_->updates.back().node = i;
    into_->updates.back().rates_place = updates_++;
    into_->updates.back().shared = plan_.shares_variable(wave, i);
  }
  if (!on_host_) find_rows_within(wave);
}

// A check has no kernel: the run looks at the value itself. What was given, and what is another
// value's memory, is there without an instruction.
void Binder::emit(std::int32_t i) {
  const Node& n = node(i);
  if (is_check(n)) {
    into_->compute.push_back({i, {}, {plan_.value(n.inputs[0])}, {}});
  } else if (n.op->effect != Effect::kNone || is_given(n)) {
    return;
  } else if (bound_.root(plan_.value_base[static_cast<std::size_t>(i)]) !=
             plan_.value_base[static_cast<std::size_t>(i)]) {
    return;  // its input's memory
  } else if (n.op->has(OpFlags::kSlice) && lies_within(plan_.value({i, 0}))) {
    return;  // read where it lies
  } else if (fusion_ != nullptr && is_elementwise(n)) {
    emit_fused(i);
  } else {
    emit_kernel(i);
  }
}

// A kernel is chosen and prepared once for these shapes, so that a run only calls it.
void Binder::emit_kernel(std::int32_t i) {
  const Node& n = node(i);
  Instruction made{i, {}, {}, {}};
  std::vector<TensorType> outputs;
  for (ValueRef in : n.inputs) made.inputs.push_back(plan_.value(in));
  for (std::size_t o = 0; o < n.outputs.size(); ++o) {
    made.outputs.push_back(plan_.value_base[static_cast<std::size_t>(i)] +
                           static_cast<std::int32_t>(o));
    outputs.push_back(bound_.stored_type(made.outputs.back()));
  }
  std::int64_t input_stride = 0, output_stride = 0;
  if (!on_host_ && device_.takes_rows_within(*n.op)) {
    input_stride = bound_.rows_of(made.inputs[0]).stride;
    output_stride = bound_.rows_of(made.outputs[0]).stride;
  }
  try {
    made.run = device_.prepare(
        *n.op, {stored_input_types(n), outputs, n.attributes, plan_.options.products,
                plan_.options.deterministic, plan_.rows_alike, input_stride, output_stride});
  } catch (const InvalidArgumentError& error) {
    bound_.fail(i, Code::kInvalidArgument, error.what());
  }
  if (!made.run)
    bound_.fail(i, Code::kUnimplemented,
                str("the device \"", device_.name(), "\" has no kernel of it"));
  into_->compute.push_back(std::move(made));
}

// Reductions happen in place: of an input that others read too, a copy is reduced.
void Binder::emit_reduction(std::int32_t i) {
  const Node& n = node(i);
  for (std::size_t k = 0; k < n.inputs.size(); ++k) {
    const std::int32_t from = plan_.value(n.inputs[k]);
    const std::int32_t to =
        plan_.value_base[static_cast<std::size_t>(i)] + static_cast<std::int32_t>(k);
    into_->reduced.push_back(to);
    if (bound_.root(to) != to) continue;
    const TensorType& type = bound_.type(to);
    const std::size_t bytes =
        static_cast<std::size_t>(type.shape.elements()) * dtype_bytes(type.dtype);
    auto copy = [bytes, &device = device_](const KernelCall& call) {
      device.copy(Device::Direction::kWithin, call.outputs[0], call.inputs[0], bytes);
    };
    into_->compute.push_back({i, copy, {from}, {to}});
  }
  into_->reductions.resize(into_->reduced.size());
}

}  // namespace cairn
