// Values of several replicas made one: reduce, gather and their kin, recorded in a traced function
// and computed at once outside of one.
#include <algorithm>

#include "core/graph/ops.h"
#include "core/graph/recording.h"
#include "strategy/base/strategy.h"

namespace cairn {
namespace {

// Within a traced function the value is recorded. Outside of one nothing would ever compute the
// value, so it is computed now.
RunValue at_hand(Array value) {
  if (TraceContext::current() != nullptr) return RunValue(std::move(value));
  return RunValue(Array(value.eval()));
}

void require_value(const char* what, const PerReplica& value) {
  if (!value.is_per_replica() && !value.defined())
    throw InvalidArgumentError(str(what, ": there is no value"));
}

void require_axis(int axis, const Array& value) {
  if (axis < -value.rank() || axis >= value.rank())
    throw InvalidArgumentError(str("Invalid reduction dimension ", axis, " for input with ",
                                   value.rank(), " dimensions."));
}

// Would the sum be the same however often the value were counted?
bool is_all_zeros(const Array& value) {
  const Tensor* constant = constant_value(value);
  if (constant == nullptr || constant->dtype() == DType::kString) return false;
  return std::all_of(constant->raw(), constant->raw() + constant->bytes(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

// Adding broadcasts, which would make a sum of values that do not belong together.
void require_equal_shapes(const std::vector<Array>& values) {
  const Shape& first = values.front().shape();
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Shape& other = values[i].shape();
    bool same = other.rank() == first.rank();
    for (int axis = 0; same && axis < first.rank(); ++axis)
      same = first[axis] == other[axis] || first[axis] == Shape::kUnknown ||
             other[axis] == Shape::kUnknown;
    if (!same)
      throw InvalidArgumentError(
          str("reduce: the values of all replicas must have one shape; that ", "of replica 0 is ",
              first.to_string(), ", of replica ", i, " ", other.to_string(),
              "; an axis would allow it"));
  }
}

Array added(const std::vector<Array>& values) {
  Array sum = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) sum = sum + values[i];  // in order of replicas
  return sum;
}

Array divided(const Array& sum, const Array& count) {
  return cast(sum, DType::kFloat32) / cast(count, DType::kFloat32);
}

// How many elements stand behind one element of the sum over `axes`.
Array elements_along(const Array& value, const std::vector<int>& axes) {
  Array count = dim_size(value, axes.front());
  for (std::size_t i = 1; i < axes.size(); ++i) count = count * dim_size(value, axes[i]);
  return count;
}

}  // namespace

std::vector<Array> Strategy::replicas_here(const PerReplica& value) const {
  const auto replicas = static_cast<std::size_t>(replicas_of_process().count);
  if (value.is_per_replica() && value.size() != replicas)
    throw InvalidArgumentError(str("the value is one of ", value.size(),
                                   " replicas, and this strategy has ", replicas, " here"));
  std::vector<Array> values;
  for (std::size_t i = 0; i < replicas; ++i) values.push_back(value.of_replica(i));
  return values;
}

Array Strategy::reduce_replicas(ReduceOp op, const std::vector<Array>& values) const {
  require_equal_shapes(values);
  const auto replicas = static_cast<std::int64_t>(values.size());
  if (op == ReduceOp::kSum || replicas == 1) return added(values);
  return divided(added(values), Array(replicas));
}

// The value that a process's only replica returns is bare, and yet every process has another one.
bool Strategy::bare_is_own_value() const {
  return replicas_of_process().count == 1 && num_replicas_in_sync() > 1 &&
         TraceContext::current() == nullptr;
}

RunValue Strategy::reduce(ReduceOp op, const PerReplica& value) {
  require_cross_replica("reduce()");
  require_value("reduce", value);
  if (value.is_per_replica() || bare_is_own_value())
    return at_hand(reduce_replicas(op, replicas_here(value)));
  if (op == ReduceOp::kSum && num_replicas_in_sync() > 1 && !is_all_zeros(value))
    throw InvalidArgumentError(
        str("reduce: a sum of a value that is no per-replica value cannot be told: ",
            value.type().to_string(), " is the same on all ", num_replicas_in_sync(),
            " replicas; its mean is itself"));
  return at_hand(value);
}

RunValue Strategy::reduce(ReduceOp op, const PerReplica& value, int axis) {
  return reduce(op, value, std::vector<int>{axis});
}

// A mean over elements of which replicas have different numbers is no mean of means: sums and
// counts are reduced apart.
RunValue Strategy::reduce(ReduceOp op, const PerReplica& value, const std::vector<int>& axes) {
  if (axes.empty()) return reduce(op, value);
  require_cross_replica("reduce()");
  require_value("reduce", value);
  std::vector<Array> sums, counts;
  for (const Array& own : replicas_here(value)) {
    for (int axis : axes) require_axis(axis, own);
    sums.push_back(reduce_sum(own, axes));
    if (op == ReduceOp::kMean) counts.push_back(elements_along(own, axes));
  }
  Array sum = reduce_replicas(ReduceOp::kSum, sums);
  if (op == ReduceOp::kMean) sum = divided(sum, reduce_replicas(ReduceOp::kSum, counts));
  return at_hand(std::move(sum));
}

Array Strategy::gather_replicas(const std::vector<Array>& values, int axis) const {
  return values.size() == 1 ? values.front() : concat(values, axis);
}

RunValue Strategy::gather(const PerReplica& value, int axis) {
  require_cross_replica("gather()");
  require_value("gather", value);
  std::vector<Array> values = {value};
  if (value.is_per_replica()) values = replicas_here(value);
  for (const Array& own : values) {
    if (own.rank() == 0)
      throw InvalidArgumentError("gather: scalars have no axis to stand behind one another along");
    require_axis(axis, own);
  }
  return at_hand(gather_replicas(values, axis));
}

std::vector<RunValue> Strategy::experimental_local_results(const PerReplica& value) const {
  std::vector<RunValue> results;
  for (std::size_t i = 0; i < value.size(); ++i) results.emplace_back(value.of_replica(i));
  return results;
}

PerReplica Strategy::experimental_distribute_values_from_function(
    const std::function<Array(const ValueContext&)>& value_fn) {
  std::vector<Array> values;
  const auto [first, count] = replicas_of_process();
  for (int i = first; i < first + count; ++i)
    values.push_back(value_fn({i, num_replicas_in_sync()}));
  return PerReplica(std::move(values));
}

}  // namespace cairn
