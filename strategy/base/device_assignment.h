// DeviceAssignment: which devices each replica of a MeshStrategy has.
//
//   DeviceAssignment own({{"cpu:0", "cpu:1"}, {"cpu:2", "cpu:3"}});   two replicas of two devices
//   auto built = DeviceAssignment::build({.num_replicas = 2, .num_logical_devices = 2});   the same
//
// A program speaks of logical devices: 0 to num_logical_devices() - 1 on every replica. Here they
// get their names. The reference's DeviceAssignment finds cores by their coordinates in a torus of
// TPU cores; a list of names says the same of devices that have no coordinates.
//   Source  tf.tpu.experimental.DeviceAssignment.
//   Thread  any: it is a value, and does not change.
#pragma once
#include <string>
#include <vector>

namespace cairn {

struct DeviceGrid {
  int num_replicas = 1;
  int num_logical_devices = 1;  // of each replica
  // The devices to deal out, in order; none: "cpu:0", "cpu:1", ..., as many as are needed.
  std::vector<std::string> devices = {};
};

class DeviceAssignment {
 public:
  // devices[r][l] is logical device l of replica r, named as in MirroredStrategy.
  //   Errors  InvalidArgument naming replica and logical device: there is no such device, or
  //           another place has it already; a replica without devices; replicas that have different
  //           numbers of them. There must be one replica at least. NotFound: a GPU that this
  //           machine does not have; says why.
  explicit DeviceAssignment(std::vector<std::vector<std::string>> devices);

  // The first devices are replica 0's, the next ones replica 1's, and so on.
  //   Errors  InvalidArgument: less than one replica or logical device; a list of devices that is
  //           not exactly as long as replicas times logical devices; else as above.
  static DeviceAssignment build(const DeviceGrid& grid);

  int num_replicas() const { return static_cast<int>(devices_.size()); }
  // The number of logical devices of each replica (num_cores_per_replica in the reference).
  int num_logical_devices() const { return static_cast<int>(devices_.front().size()); }
  // The name, as it was given.
  //   Errors  InvalidArgument: no such replica or logical device.
  const std::string& device(int replica, int logical_device) const;
  // The devices that are this logical device in each replica, in the replicas' order.
  //   Errors  InvalidArgument: no such logical device.
  std::vector<std::string> devices_of_logical(int logical_device) const;

 private:
  std::vector<std::vector<std::string>> devices_;
};

}  // namespace cairn
