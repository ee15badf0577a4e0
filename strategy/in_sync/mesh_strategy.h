// MeshStrategy: MirroredStrategy whose replicas have several logical devices each. It stands in the
// place of the reference's TPUStrategy: there is no TPU here, but its program model, with which a
// model too large for one device is cut up, has the same calls, values and errors.
//
//   MeshStrategy strategy(DeviceAssignment::build({.num_replicas = 2, .num_logical_devices = 2}));
//   auto scope = strategy.scope();
//   Function step = strategy.function([&](Iterator batches) {
//     auto [features, label] = batches.get_next();
//     features = strategy.experimental_split_to_logical_devices(features, {2, 1});
//     Array hidden = strategy.experimental_assign_to_logical_device(layer(features), 1);
//     ...
//   });
//
// All else is MirroredStrategy's: replicas, copies of variables, sums, batches, failures.
//
//   Effect  An annotation is verified, and gives back its value: the same Array, so that it costs
//           nothing when the function runs. A replica computes on its logical device 0: all logical
//           CPUs are one processor with one memory, so that a value on another of them would be
//           neither nearer nor farther. A program keeps its annotations for devices on which they
//           will mean a place.
//   Source  tf.distribute.TPUStrategy, without experimental_spmd_xla_partitioning.
#pragma once
#include <cstdint>
#include <vector>

#include "strategy/base/device_assignment.h"
#include "strategy/in_sync/mirrored_strategy.h"

namespace cairn {

class MeshStrategy final : public MirroredStrategy {
 public:
  // Has a replica for each of the assignment's. The default is one replica with one logical
  // device.
  explicit MeshStrategy(DeviceAssignment assignment = DeviceAssignment::build({}),
                        const InSyncOptions& options = {});

  const DeviceAssignment& device_assignment() const { return assignment_; }
  // The number of logical devices of each replica.
  int num_logical_devices() const { return assignment_.num_logical_devices(); }

  // `value` belongs on logical device `logical_device`, [0, num_logical_devices()).
  //   Errors  InvalidArgument: no such logical device; a value per replica, which one replica has
  //           no part of (annotate it in a function that run() runs).
  Array experimental_assign_to_logical_device(const Array& value, int logical_device) const;
  // `value` is cut along each of its axes into as many equal pieces as `partition_dimensions` says,
  // and the pieces lie on all logical devices, in order, the last axis fastest.
  //   Errors  InvalidArgument: not a number for each axis, each 1 at least; a size that it does not
  //           divide (one that is unknown when traced is not verified); numbers whose product is
  //           not num_logical_devices(); a value per replica.
  Array experimental_split_to_logical_devices(
      const Array& value, const std::vector<std::int64_t>& partition_dimensions) const;
  // Every logical device has all of `value`.
  //   Errors  InvalidArgument: a value per replica.
  Array experimental_replicate_to_logical_devices(const Array& value) const;

 private:
  const DeviceAssignment assignment_;
};

}  // namespace cairn
