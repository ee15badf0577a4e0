// CrossDeviceOps: how the replicas of one process make one value of several, as a program chooses.
//
//   class Counting final : public CrossDeviceOps {
//     std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) override {
//       ...  members that count what they are asked, and ask those of ThreadOps
//     }
//   };
//   MirroredStrategy own({"cpu:0", "cpu:1"}, std::make_shared<Counting>());
//   MirroredStrategy ring({"cpu:0", "cpu:1"}, "Ring");      one of ours, by its name
//
// The reference's CrossDeviceOps is given the values of all replicas by one thread. Here each
// replica has a thread, and a member object of a group that does it (collective/base/collective.h).
//
// The built-in ops differ in which thread adds and in which order (collective/base/sum_order.h), so
// float sums differ in their last bits. Each op repeats bit for bit, alike on all replicas.
//
//   name                       who adds                     order           same bits as ThreadOps
//   ThreadOps                  all replicas that wait       of replicas
//   ReductionToOneDevice       one replica, for all         of replicas     always
//   HierarchicalCopyAllReduce  all replicas that wait       of pairs        with up to 3 replicas
//   Ring                       all replicas that wait       around a ring   with up to 2 replicas
//   NcclAllReduce              the replicas' GPUs           NCCL's          not promised
//
// On logical CPUs nothing else is different: all read and write the one memory there is, and have
// no links that a hierarchy of copies or a ring would spare, as they do between GPUs. A program
// takes another one than ThreadOps for the bits: those of a ring between processes, or the smaller
// rounding error of pairs.
//
//   Not theirs  Rows (sparse gradients), changes of variables by aggregation, and values at hand in
//               Strategy::reduce(): whatever the choice here, these are added in the order of
//               replicas.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "collective/base/collective.h"

namespace cairn {

class CrossDeviceOps {
 public:
  virtual ~CrossDeviceOps() = default;
  // A group of so many members, by rank; each will be used by one thread. Called once, and again
  // after a run that failed. A member that is destroyed must let the others' calls fail.
  // `timeout`: how long a member's call waits for the others.
  //   Thread  the strategy's.
  virtual std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) = 0;

  // Where values meet that lie on devices with memory of their own. kDevicesOnly: a strategy whose
  // devices cannot do that is refused. On devices the group's members only meet
  // (AllReduceBuffer::values), and the dense shares of gradients are summed there as well.
  enum class MeetingPlace : std::uint8_t { kHost, kDevicesIfTheyCan, kDevicesOnly };
  virtual MeetingPlace meeting_place() const { return MeetingPlace::kHost; }
};

// By the name of its class, one of those below.
//   Errors  InvalidArgument: another name.
std::shared_ptr<CrossDeviceOps> cross_device_ops_of(std::string_view name);

// The default of the strategies: values are summed where they lie. In the host's memory the
// replicas' threads do it themselves, in the order of replicas; on devices that can do it, the
// devices (core/kernels/device_group.h), in an order of theirs.
class ThreadOps final : public CrossDeviceOps {
 public:
  std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) override;
  MeetingPlace meeting_place() const override { return MeetingPlace::kDevicesIfTheyCan; }
};

// The devices sum values where they lie, using NVIDIA's NCCL. If they cannot, the strategy's
// constructor raises FailedPrecondition and says why. Values that are not on a device are summed as
// ThreadOps sums them.
class NcclAllReduce final : public CrossDeviceOps {
 public:
  std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) override;
  MeetingPlace meeting_place() const override { return MeetingPlace::kDevicesOnly; }
};

// One replica adds the values of all, and gives each of them the sum; the others wait for it.
class ReductionToOneDevice final : public CrossDeviceOps {
 public:
  explicit ReductionToOneDevice(int replica = 0) : replica_(replica) {}
  //   Errors  InvalidArgument, from the strategy's constructor: there is no such replica.
  std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) override;

 private:
  const int replica_;
};

// Neighbours are added first, then their sums, and so on.
class HierarchicalCopyAllReduce final : public CrossDeviceOps {
 public:
  std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) override;
};

// Each replica's slice of the values is added around the ring, beginning behind it.
class Ring final : public CrossDeviceOps {
 public:
  std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) override;
};

}  // namespace cairn
