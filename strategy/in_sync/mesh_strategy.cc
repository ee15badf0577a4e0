#include "strategy/in_sync/mesh_strategy.h"

#include <utility>

namespace cairn {
namespace {

void require_one_value(const char* what, const Array& value) {
  if (!value.defined())
    throw InvalidArgumentError(
        str(what, ": the value is undefined, or one per replica: annotate it in a function that ",
            "the strategy's run() runs, where each replica has its own"));
}

std::string list_of(const std::vector<std::int64_t>& numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) text += str(i == 0 ? "" : ", ", numbers[i]);
  return text + "]";
}

}  // namespace

MeshStrategy::MeshStrategy(DeviceAssignment assignment, const InSyncOptions& options)
    : MirroredStrategy(assignment.devices_of_logical(0), options),
      assignment_(std::move(assignment)) {}

Array MeshStrategy::experimental_assign_to_logical_device(const Array& value,
                                                          int logical_device) const {
  require_one_value("experimental_assign_to_logical_device", value);
  if (logical_device < 0 || logical_device >= num_logical_devices())
    throw InvalidArgumentError(
        str("experimental_assign_to_logical_device: there is no logical device ", logical_device,
            "; each replica has ", num_logical_devices(), ", 0 to ", num_logical_devices() - 1,
            ": assign to one of them, or give the strategy a larger device assignment"));
  return value;
}

// The checks are in the reference's order: of several faults, both then report the same one.
Array MeshStrategy::experimental_split_to_logical_devices(
    const Array& value, const std::vector<std::int64_t>& partition_dimensions) const {
  constexpr const char* kWhat = "experimental_split_to_logical_devices: ";
  require_one_value("experimental_split_to_logical_devices", value);
  const Shape& shape = value.shape();
  if (static_cast<int>(partition_dimensions.size()) != shape.rank())
    throw InvalidArgumentError(
        str(kWhat, "the length of partition_dimensions ", list_of(partition_dimensions), " is ",
            partition_dimensions.size(), ", and the value has ", shape.rank(), " axes, ",
            shape.to_string(), ": give a number for each axis, 1 where it stays whole"));
  std::int64_t pieces = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t parts = partition_dimensions[static_cast<std::size_t>(axis)];
    if (parts < 1)
      throw InvalidArgumentError(
          str(kWhat, "axis ", axis, " cannot be cut into ", parts, " pieces: 1 leaves it whole"));
    if (shape[axis] != Shape::kUnknown && shape[axis] % parts != 0)
      throw InvalidArgumentError(str(kWhat, "axis ", axis, " of ", shape.to_string(),
                                     " cannot be cut into ", parts, " equal pieces: choose a ",
                                     "number that divides ", shape[axis], ", or pad the value"));
    // Numbers whose product does not fit are too many pieces in any case.
    if (__builtin_mul_overflow(pieces, parts, &pieces)) pieces = 0;
    if (pieces == 0) break;
  }
  if (pieces != num_logical_devices())
    throw InvalidArgumentError(
        str(kWhat, "the product of partition_dimensions ", list_of(partition_dimensions),
            " must be the number of logical devices of a replica, ", num_logical_devices()));
  return value;
}

Array MeshStrategy::experimental_replicate_to_logical_devices(const Array& value) const {
  require_one_value("experimental_replicate_to_logical_devices", value);
  return value;
}

}  // namespace cairn
