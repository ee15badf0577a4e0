// CrossDeviceOps: how the replicas of one process make one value of several, as a program chooses.
//
//   class Counting final : public CrossDeviceOps {
//     std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) override {
//       ...  members that count what they are asked, and ask those of ThreadOps
//     }
//   };
//   MirroredStrategy strategy({"cpu:0", "cpu:1"},
//                             {.cross_device_ops = std::make_shared<Counting>()});
//
// The reference's CrossDeviceOps is given the values of all replicas by one thread. Here each
// replica has a thread, and a member object of a group that does it (collective/collective.h).
#pragma once
#include <memory>
#include <vector>

#include "collective/collective.h"

namespace cairn {

class CrossDeviceOps {
 public:
  virtual ~CrossDeviceOps() = default;
  // A group of so many members, by rank; each will be used by one thread. Called once, and again
  // after a run that failed. A member that is destroyed must let the others' calls fail.
  // `timeout`: how long a member's call waits for the others.
  //   Thread  the strategy's.
  virtual std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) = 0;
};

// What strategies use unless told otherwise: values are summed where they lie, by the replicas'
// threads themselves, in the order of replicas.
class ThreadOps final : public CrossDeviceOps {
 public:
  std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) override;
};

}  // namespace cairn
