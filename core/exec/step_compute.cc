// The computing part of a run: instructions, and what a failed check says.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/clones.h"
#include "core/base/trace.h"
#include "core/exec/step.h"
#include "core/graph/op_def.h"

namespace cairn {

namespace {

// Infinities and NaNs are the numbers whose exponent has all bits set. Looking at the bits without
// a branch lets the loop run in vectors.
CAIRN_CLONES bool all_finite(const float* x, std::int64_t n) {
  std::uint32_t bad = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    bad |= (bits & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  }
  return bad == 0;
}

bool all_finite(const Tensor& tensor) {
  return tensor.dtype() != DType::kFloat32 || !tensor.defined() ||
         all_finite(tensor.values<float>().data(), tensor.elements());
}

// False for a NaN.
bool lies_in(float x, float low, float high) { return x >= low && x <= high; }

// Without a branch, as above.
CAIRN_CLONES bool all_in(const float* x, std::int64_t n, float low, float high) {
  std::uint32_t bad = 0;
  for (std::int64_t i = 0; i < n; ++i) bad |= lies_in(x[i], low, high) ? 0u : 1u;
  return bad == 0;
}

// Where a check is one of a range; else numbers need only be finite.
struct CheckedRange {
  explicit CheckedRange(const Node& check) : given(check.op->name == "check_range") {
    if (!given) return;
    low = static_cast<float>(check.attributes.get<double>("low"));
    high = static_cast<float>(check.attributes.get<double>("high"));
  }
  bool holds(float x) const { return given ? lies_in(x, low, high) : std::isfinite(x); }
  bool holds(const float* x, std::int64_t n) const {
    return given ? all_in(x, n, low, high) : all_finite(x, n);
  }
  bool given;
  float low = 0, high = 0;
};

std::string at_step(const StepContext& step) {
  return step.global_step < 0 ? "" : str(" at step ", step.global_step);
}

}  // namespace

void Step::compute() {
  BoundWave& wave = bound_->waves[wave_];
  for (const Instruction& instruction : wave.compute) {
    const std::int32_t update = instruction.for_update;
    if (update >= 0) {
      const BoundUpdate& reader = wave.updates[static_cast<std::size_t>(update)];
      if (made_here(reader) || sums_here(reader)) continue;
    }
    run_instruction(instruction);
  }
}

void Step::run_instruction(const Instruction& instruction) {
  const TraceSpan span(node(instruction.node).op->name.data(), context_.closure);
  if (!instruction.run) {
    // A device with memory of its own may run later: the value is looked at behind the whole wave.
    if (space_.on_host) return check_values(instruction);
    return bring(instruction.inputs[0]);
  }
  // The lists of pointers belong to the workspace, so that an instruction allocates nothing.
  auto& in = space_.call_inputs;
  auto& out = space_.call_outputs;
  in.clear();
  out.clear();
  for (std::int32_t value : instruction.inputs) in.push_back(data(value));
  for (std::int32_t value : instruction.outputs) out.push_back(const_cast<std::byte*>(data(value)));
  try {
    instruction.run({in.data(), out.data()});
  } catch (const InvalidArgumentError& error) {
    if (stops(instruction.node)) {
      describe_failed_check();
      raise_failed_check();
    }
    throw InvalidArgumentError(str(bound_->node_text(instruction.node), ": ", error.what()));
  }
  // made by the kernel, not in the arena
  if (bound_->type(instruction.outputs[0]).dtype == DType::kString)
    space_.pointers[static_cast<std::size_t>(instruction.outputs[0])] = out[0];
}

// ---- checks ----

void Step::check_values(const Instruction& instruction) {
  const std::int32_t value = instruction.inputs[0];
  const auto* values = reinterpret_cast<const float*>(on_host(value));
  const std::int64_t count = bound_->type(value).shape.elements();
  if (!CheckedRange(node(instruction.node)).holds(values, count))
    fail_check(instruction.node, values, count);
}

// Only notes that the check failed. The message is made when the wave's compute is done, because
// more is known by then.
void Step::fail_check(std::int32_t check, const float* values, std::int64_t count) {
  if (!failed_) {
    failed_ = std::make_unique<FailedCheck>();
    failed_->node = check;
    const CheckedRange range(node(check));
    const float found =
        *std::find_if_not(values, values + count, [&](float x) { return range.holds(x); });
    failed_->value = std::isnan(found) ? std::abs(found) : found;  // no "-nan" in the message
    failed_->stopped.assign(plan_->graph.nodes.size(), false);
  }
  stop_dependents(check);
}

// Whatever is computed from the checked value or from the check's result; through variables too: a
// read after an update that is not made would find what it should not.
void Step::stop_dependents(std::int32_t check) {
  std::vector<bool>& stopped = failed_->stopped;
  stopped[static_cast<std::size_t>(check)] = true;
  const ValueRef checked = node(check).inputs[0];
  std::vector<bool> variables(plan_->graph.variables.size(), false);
  for (std::size_t i = 0; i < stopped.size(); ++i) {
    const Node& n = plan_->graph.nodes[i];
    const bool read = n.op->effect == Effect::kRead, update = n.op->effect == Effect::kUpdate;
    const auto variable =
        static_cast<std::size_t>(read || update ? n.attributes.get<std::int64_t>("variable") : 0);
    stopped[i] = stopped[i] || (read && variables[variable]) ||
                 std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueRef in) {
                   return in == checked || stopped[static_cast<std::size_t>(in.node)];
                 });
    if (update && stopped[i]) variables[variable] = true;
  }
}

bool Step::stops(std::int32_t i) const {
  return failed_ && failed_->stopped[static_cast<std::size_t>(i)];
}

// A read that is stopped for its variable's sake alone may still be made.
bool Step::by_stopped_ids(std::int32_t read) const {
  return std::any_of(node(read).inputs.begin(), node(read).inputs.end(),
                     [&](ValueRef in) { return stops(in.node); });
}

void Step::describe_failed_check() {
  if (!failed_->message.empty()) return;
  const Attributes& check = node(failed_->node).attributes;
  failed_->message = str(check.get<std::string>("what"), " is ", failed_->value, at_step(context_));
  failed_->message +=
      std::isfinite(failed_->value)
          ? check.get<std::string>("cure")
          : str(", not finite", blame(),
                "; lower the learning rate, or look in the data for a value that is not finite");
}

void Step::raise_failed_check() const {
  if (!std::isfinite(failed_->value)) throw NotFiniteError(failed_->message);
  throw InvalidArgumentError(failed_->message);
}

// The first variable whose value as pulled, or whose update as computed so far, is not finite.
std::string Step::blame() {
  for (std::size_t w = 0; w < wave_; ++w)
    for (std::size_t g = 0; g < bound_->waves[w].reads.size(); ++g)
      if (!all_finite(bound_->waves[w].reads[g].value))
        return str(
            "; variable \"",
            plan_->graph.variables[static_cast<std::size_t>(plan_->waves[w].reads[g].variable)]
                .name,
            "\" holds a value that is not finite");
  for (const BoundUpdate& update : bound_->waves[wave_].updates) {
    std::int32_t value =
        update.rows.within >= 0 && made_here(update)
            ? update.rows.within
            : input(update.node, node(update.node).attributes.get<bool>("sparse") ? 1 : 0);
    if (bound_->type(value).dtype == DType::kFloat32 &&
        !all_finite(reinterpret_cast<const float*>(on_host(value)),
                    bound_->type(value).shape.elements()))
      return str("; the update of variable \"", variable_of(update.node).name, "\" is not finite");
  }
  return "; every variable read and every update computed so far is finite";
}

}  // namespace cairn
