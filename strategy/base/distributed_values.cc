#include "strategy/base/distributed_values.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "core/graph/recording.h"
#include "strategy/base/run_values.h"

namespace cairn {

ReduceOp reduce_op_of(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (upper == "SUM") return ReduceOp::kSum;
  if (upper == "MEAN") return ReduceOp::kMean;
  throw InvalidArgumentError(str("'", name, "' is not a valid ReduceOp; it is SUM or MEAN"));
}

const Tensor& RunValue::tensor() const {
  if (!defined())
    throw FailedPreconditionError(
        "it has one value per replica, or none: ask for experimental_local_results(), or reduce or "
        "gather it");
  if (const Tensor* value = constant_value(*this)) return *value;
  throw FailedPreconditionError(
      "run() was recorded into the function being traced: its result is an Array, and has a value "
      "only when that function "
      "runs. Return it from there");
}

// With values of several replicas the Array underneath stays empty, so that an operation that takes
// it for one value says so instead of computing with the first replica's.
PerReplica::PerReplica(std::vector<Array> values) : RunValue(Array()), values_(std::move(values)) {
  if (values_.empty()) throw InvalidArgumentError("a per-replica value needs a value per replica");
  if (values_.size() > 1) return;
  // One value alone is a bare value, which computes as any Array does.
  static_cast<Array&>(*this) = std::move(values_.front());
  values_.clear();
}

const Array& PerReplica::of_replica(std::size_t replica) const {
  if (!is_per_replica()) return *this;
  if (replica >= values_.size())
    throw InvalidArgumentError(str("the value is one of ", values_.size(),
                                   " replicas, and has none of replica ", replica));
  return values_[replica];
}

const PerReplica& RunResult::get(const std::string& name) const {
  static const std::vector<std::string> kNoNames;
  const auto& names = names_ ? *names_ : kNoNames;
  auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return at(static_cast<std::size_t>(found - names.begin()));
  const std::string near = nearest_name(name, names);
  throw InvalidArgumentError(str("the function has no output \"", name, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

RunResult::operator std::vector<Tensor>() const {
  std::vector<Tensor> tensors;
  for (const PerReplica& value : values_) tensors.push_back(value.tensor());
  return tensors;
}

}  // namespace cairn
