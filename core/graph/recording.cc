#include "core/graph/recording.h"

#include <atomic>
#include <utility>

namespace cairn {
namespace {

std::atomic<std::uint64_t> next_sequence{1};  // shared by all threads: an Array may cross them
thread_local TraceContext* current_trace = nullptr;

std::vector<TensorType> types_of(const OpDef& op, const std::vector<Array>& inputs) {
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined())
      throw InvalidArgumentError(str(op.name, ": input ", i, " is an Array without a value"));
    types.push_back(inputs[i].type());
  }
  return types;
}

// Types are inferred at once, so that an error is raised where the operation is written.
std::shared_ptr<ArrayNode> make_node(EffectRecord effect) {
  const OpDef* op = find_op(effect.op);
  CAIRN_CHECK(op != nullptr, "no operation ", effect.op);
  auto node = std::make_shared<ArrayNode>();
  node->op = op;
  node->outputs =
      infer_types(*op, {types_of(*op, effect.inputs), effect.attributes, effect.subject});
  node->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  node->inputs = std::move(effect.inputs);
  node->attributes = std::move(effect.attributes);
  node->variable = std::move(effect.variable);
  node->runtime = effect.runtime;
  node->mirrored = effect.mirrored;
  node->origin = current_origin();
  return node;
}

Array constant(Tensor value) {
  if (!value.defined()) throw InvalidArgumentError("constant: the tensor has no value");
  return record("constant", {}, {{"value", std::move(value)}});
}

}  // namespace

// A chain of nodes would be destroyed by recursion, as deep as the chain is long. Taking the inputs
// out first makes a loop of it.
ArrayNode::~ArrayNode() {
  std::vector<Array> pending = std::move(inputs);
  const auto take_sources = [&pending](ArrayNode& of) {
    if (of.derivative == nullptr) return;
    for (Array& source : of.derivative->inputs) pending.push_back(std::move(source));
  };
  take_sources(*this);
  while (!pending.empty()) {
    Array last = std::move(pending.back());
    pending.pop_back();
    if (!last.defined() || last.node().use_count() > 1) continue;
    // We hold the only handle, so no other code reads the node any more.
    auto& node = const_cast<ArrayNode&>(*last.node());
    for (Array& input : node.inputs) pending.push_back(std::move(input));
    node.inputs.clear();
    take_sources(node);
  }
}

// Traces nest: a function may be traced while another one is.
TraceContext::TraceContext()
    : id_(next_sequence.fetch_add(1, std::memory_order_relaxed)), previous_(current_trace) {
  current_trace = this;
}
TraceContext::~TraceContext() { current_trace = previous_; }
TraceContext* TraceContext::current() { return current_trace; }

const Array& TraceContext::worker_index() {
  if (!worker_index_.defined())
    worker_index_ = Array(record_effect({"argument",
                                         {},
                                         {{"index", static_cast<std::int64_t>(arguments_)}},
                                         {TensorType{DType::kInt64, {}}},
                                         nullptr,
                                         nullptr}),
                          0);
  return worker_index_;
}

Array record(std::string_view op, std::vector<Array> inputs, Attributes attributes) {
  return {make_node({op, std::move(inputs), std::move(attributes), {}, nullptr, nullptr}), 0};
}

// Nothing is computed for it, here or by a receiver of the graph, who sees an operation that no
// gradient passes.
Array record_with_derivative(const Array& value, Derivative derivative) {
  auto node = make_node({"stop_gradient", {value}, {}, {}, nullptr, nullptr});
  node->derivative = std::make_unique<Derivative>(std::move(derivative));
  return {std::move(node), 0};
}

// The trace keeps updates and advances, since they happen even if their outputs are not used. A
// read whose value is not used is left out.
std::shared_ptr<ArrayNode> record_effect(EffectRecord effect) {
  auto node = make_node(std::move(effect));
  if (current_trace == nullptr) return node;
  node->trace = current_trace->id();
  if (node->op->effect == Effect::kUpdate || node->op->effect == Effect::kAdvance)
    current_trace->add_effect(node);
  return node;
}

const Tensor* constant_value(const Array& array) {
  if (!array.defined() || !array.node()->op->has(OpFlags::kConstant)) return nullptr;
  return &array.node()->attributes.get<Tensor>("value");
}

Array::Array(Tensor value) : Array(constant(std::move(value))) {}

Array Array::of_float(float value) { return constant(Tensor::scalar(value)); }
Array Array::of_bool(bool value) { return constant(Tensor::scalar(value)); }

Array Array::of_int(std::int64_t value, DType dtype) {
  if (dtype == DType::kInt32 && !std::in_range<std::int32_t>(value))
    throw InvalidArgumentError(
        str("the number ", value, " does not fit into int32; cast the array beside it to int64"));
  const bool small = dtype == DType::kInt32;
  Array made =
      constant(small ? Tensor::scalar(static_cast<std::int32_t>(value)) : Tensor::scalar(value));
  made.integer_literal_ = true;
  return made;
}

void Array::refuse_unsigned(std::uint64_t value) {
  throw InvalidArgumentError(
      str("the number ", value, " is beyond int64, the largest integer type of arrays"));
}

// Only an Array that was written as a C++ integer adapts; any other keeps its dtype.
Array Array::beside(DType dtype) const {
  if (!integer_literal_ || dtype == this->dtype()) return *this;
  const Tensor* number = constant_value(*this);
  CAIRN_CHECK(number != nullptr, "an integer literal is a constant");
  const std::int64_t value = number->dtype() == DType::kInt32 ? number->item<std::int32_t>()
                                                              : number->item<std::int64_t>();
  if (dtype == DType::kFloat32) return of_float(static_cast<float>(value));
  if (dtype == DType::kInt32 || dtype == DType::kInt64) return of_int(value, dtype);
  return *this;
}

const TensorType& Array::type() const {
  if (!defined()) throw InvalidArgumentError("the Array has no value");
  return node_->outputs[static_cast<std::size_t>(output_)];
}

}  // namespace cairn
