#include "core/exec/numeric_checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/clones.h"
#include "core/exec/device_step.h"
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
  explicit CheckedRange(const Node& check) : given(check.op->has(OpFlags::kRange)) {
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

void NumericChecks::look_at(const Instruction& check) {
  const std::int32_t value = check.inputs[0];
  const auto* elements = reinterpret_cast<const float*>(values_.host_view(value));
  const std::int64_t count = values_.bound().type(value).shape.elements();
  if (!CheckedRange(values_.node(check.node)).holds(elements, count))
    fail(check.node, elements, count);
}

// Only notes that the check failed.
void NumericChecks::fail(std::int32_t check, const float* values, std::int64_t count) {
  if (!failed_) {
    failed_ = std::make_unique<Failed>();
    failed_->node = check;
    const CheckedRange range(values_.node(check));
    const float found =
        *std::find_if_not(values, values + count, [&](float x) { return range.holds(x); });
    failed_->value = std::isnan(found) ? std::abs(found) : found;  // no "-nan" in the message
    failed_->stopped.assign(values_.plan().graph.nodes.size(), false);
  }
  stop_dependents(check);
}

void NumericChecks::stop_dependents(std::int32_t check) {
  std::vector<bool>& stopped = failed_->stopped;
  stopped[static_cast<std::size_t>(check)] = true;
  const Graph& graph = values_.plan().graph;
  const ValueRef checked = values_.node(check).inputs[0];
  std::vector<bool> variables(graph.variables.size(), false);
  for (std::size_t i = 0; i < stopped.size(); ++i) {
    const Node& n = graph.nodes[i];
    const bool read = is_read(n), update = is_update(n);
    const auto variable =
        static_cast<std::size_t>(read || update ? n.attributes.get<std::int64_t>("variable") : 0);
    stopped[i] = stopped[i] || (read && variables[variable]) ||
                 std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueRef in) {
                   return in == checked || stopped[static_cast<std::size_t>(in.node)];
                 });
    if (update && stopped[i]) variables[variable] = true;
  }
}

bool NumericChecks::stops_ids_of(std::int32_t read) const {
  return std::ranges::any_of(values_.node(read).inputs,
                             [&](ValueRef in) { return stops(in.node); });
}

void NumericChecks::describe(std::size_t wave) {
  if (!failed_->message.empty()) return;
  const Attributes& check = values_.node(failed_->node).attributes;
  failed_->message =
      str(check.get<std::string>("what"), " is ", failed_->value, at_step(values_.context()));
  failed_->message +=
      std::isfinite(failed_->value)
          ? check.get<std::string>("cure")
          : str(", not finite", blame(wave),
                "; lower the learning rate, or look in the data for a value that is not finite");
}

void NumericChecks::raise() const {
  const ErrorPlace place = place_of(values_.plan().graph, failed_->node);
  const Origin& origin = values_.node(failed_->node).origin;
  const std::string message = (origin.known() ? origin.text() + ": " : "") + failed_->message;
  if (!std::isfinite(failed_->value)) throw NotFiniteError(message, {}, place);
  throw InvalidArgumentError(message, {}, place);
}

// The first variable whose value as pulled, or whose update as computed so far, is not finite.
std::string NumericChecks::blame(std::size_t wave) {
  const std::vector<GraphVariable>& variables = values_.plan().graph.variables;
  const BoundPlan& bound = values_.bound();
  for (std::size_t w = 0; w < wave; ++w)
    for (std::size_t g = 0; g < bound.waves[w].reads.size(); ++g)
      if (!all_finite(bound.waves[w].reads[g].value)) {
        const ReadGroup& group = values_.plan().waves[w].reads[g];
        return str("; variable \"", variables[static_cast<std::size_t>(group.variable)].name,
                   "\" holds a value that is not finite");
      }
  for (const BoundUpdate& update : bound.waves[wave].updates) {
    const bool sparse = values_.node(update.node).attributes.get<bool>("sparse");
    const bool read_within =
        update.rows.within >= 0 && device_ != nullptr && device_->updates.makes(update);
    const std::int32_t value =
        read_within ? update.rows.within : values_.input(update.node, sparse ? 1 : 0);
    if (bound.type(value).dtype == DType::kFloat32 &&
        !all_finite(reinterpret_cast<const float*>(values_.host_view(value)),
                    bound.type(value).shape.elements()))
      return str("; the update of variable \"", values_.variable_of(update.node).name,
                 "\" is not finite");
  }
  return "; every variable read and every update computed so far is finite";
}

}  // namespace cairn
