// HybridPolicy: the rounds of HybridStrategy. Each lane of a group (round_group.h) runs one member,
// and the members all-reduce their gradients before any of them pushes, so they wait for each
// other. Rows of tables are applied as each member pushes them; what is mirrored is a share, the
// first member's, which the shards apply when all members have answered.
//
// If a member fails, if its lane is lost, or if there are fewer closures than lanes, the round is
// dissolved: all members come back first, and then join later rounds, with whichever others. Of the
// dissolved round only rows of tables were applied, and those once for each closure. Once all
// members have answered, the round is no longer dissolved but applied.
//
// As soon as the open round is whole, the next one may begin ahead of it. Its members read their
// data and their rows of tables at once, and continue when the member before them on the lane has
// updated the lane's copies. They assume that the open round will be applied; if it is not, they
// are dissolved with it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/dispatch/round_group.h"
#include "coordinator/dispatch/rounds_policy.h"

namespace cairn {

class HybridPolicy final : public RoundsPolicy {
 public:
  explicit HybridPolicy(PolicyParts parts);

  void begun(const std::shared_ptr<Closure>& closure, const LaneState& lane) override;
  // Its rows of tables are applied by then.
  Answer answered(const std::shared_ptr<Closure>& closure, LaneState& lane,
                  LaneReply& reply) override;
  void lost(const Closure& closure) override;
  bool pushes_alone(const Closure&) const override { return true; }  // rows of tables
  void settle() override;
  void sent() override;
  std::string held_back(const Closure& next) const override;
  // One: the lanes of a worker would be members of a group at one address.
  std::uint32_t lanes_used(const Worker& worker, std::uint32_t lanes) const override;

 private:
  bool fits(const Closure& next) const override;
  bool may_join(const Round& round, const LaneState& lane) const override;
  bool ahead_is_next() const override;
  void open(Round& round, std::int64_t steps) override;
  bool complete() const override;
  void before_applying() override;
  void not_applied(const Attempt& attempt) override;
  std::vector<Outcomes::Result> take() override;
  void verify_copies() const;

  void settle_group();
  void form_group(std::vector<LaneState*> lanes);
  rpc::Task<void> join_group(std::uint64_t number, std::vector<LaneState*> lanes,
                             std::vector<LaneState*> others);
  void break_group();
  rpc::Task<void> pump_later();

  bool all_sent() const;
  // The group of a round has broken up, or its members used copies that turned out wrong, and not
  // all of them have answered: none of the others is to end well.
  bool broken() const { return !(stands(open_) && stands(ahead_)); }
  bool stands(const Round& round) const;
  bool on_a_lane(const Round& round) const;
  // Fewer closures than the group has lanes, and no more to come: the members wait in vain.
  bool short_of_members() const;
  std::vector<LaneState*> lanes_of_members() const;
  // Rounds of which not all have answered are over, and nothing of them is applied.
  void dissolve();
  void dissolve(Round& round, std::vector<std::shared_ptr<Closure>>& answered);
  // Copies on lanes are not what the ps have, whatever they are of.
  void forget_copies() { base_ = 0; }

  RoundGroup group_;
  std::deque<std::int64_t> unused_steps_;  // of rounds that were dissolved
  std::size_t queued_ = 0;                 // closures in the queue
  // The last round that was applied, if copies of it are as the ps have it, and rows_generation()
  // as it began; 0: none is.
  std::uint64_t base_ = 0, base_generation_ = 0;
  std::uint64_t restores_ = 0;  // ClusterMembers::restores, when the newest round began
};

}  // namespace cairn
