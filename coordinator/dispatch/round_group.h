// RoundGroup: the lanes that take a round together under HybridStrategy, and all-reduce the
// gradients of what is mirrored. The scheduler has them form a group, and a new one when a lane
// was lost, has come, or has no closure.
//
// A lane is in one group at a time, by number. Numbers only grow, so that messages which an earlier
// group still sends are recognised.
//   Thread  the engine's.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "coordinator/cluster/cluster_members.h"

namespace cairn {

class RoundGroup {
 public:
  explicit RoundGroup(const ClusterMembers& members) : members_(members) {}

  std::uint64_t number() const { return number_; }  // 0: there is none
  std::size_t size() const { return lanes_.size(); }
  const std::vector<LaneState*>& lanes() const { return lanes_; }
  // In the group since it was formed, by the same connection.
  bool has(const LaneState& lane) const {
    return number_ != 0 && lane.ready && lane.group == number_;
  }
  // All of its lanes are there.
  bool stands() const {
    return number_ != 0 && std::all_of(lanes_.begin(), lanes_.end(),
                                       [this](const LaneState* one) { return has(*one); });
  }
  // Those that a group could be made of, by their numbers.
  std::vector<LaneState*> candidates() const {
    std::vector<LaneState*> lanes;
    for (LaneState* lane : members_.lanes)
      if (lane->ready && !lane->kept_out) lanes.push_back(lane);
    return lanes;
  }

  // Another round may begin in it with so many closures in the queue. One of fewer lanes than there
  // are was made for a round of as few closures; it serves for that one, and then for as long as
  // there are no more.
  bool serves(std::size_t queued) const {
    return !forming_ && stands() && (fresh_ || queued <= size() || candidates().size() == size());
  }
  void round_begins() { fresh_ = false; }

  bool forming() const { return forming_; }
  // The number of the group that is being formed from now on. The first is `first`: workers
  // remember the groups of earlier sessions, and of earlier terms of this one.
  std::uint64_t begin_to_form(std::uint64_t first) {
    number_ = 0;
    forming_ = true;
    return newest_ = newest_ == 0 ? first : newest_ + 1;
  }
  // Each of `lanes` has its number. Empty: nothing came of it.
  void formed(std::vector<LaneState*> lanes) {
    forming_ = false;
    fresh_ = true;
    number_ = lanes.empty() ? 0 : newest_;
    lanes_ = std::move(lanes);
  }
  // Returns the lanes that are still there and may wait for one another.
  std::vector<LaneState*> broke() {
    std::vector<LaneState*> left;
    for (LaneState* lane : lanes_)
      if (has(*lane)) left.push_back(lane);
    number_ = 0;
    return left;
  }

 private:
  const ClusterMembers& members_;
  std::vector<LaneState*> lanes_;  // by rank
  std::uint64_t number_ = 0, newest_ = 0;
  bool forming_ = false, fresh_ = false;
};

}  // namespace cairn
