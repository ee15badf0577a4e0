// SynchronousPolicy: synchronous(b). A round has a member for each lane; the shards keep the
// members' shares, and add them up when all but those of the `b` slowest workers have answered.
//
// A closure that was too slow is left out: it is not named to the shards, and what its lane still
// sends for it is a share of a round that is over. That lane is late (LaneState::late), and its
// answer is not looked at. The closure is a member of the next round, which waits for it, so that
// none is left out twice in a row.
//
// Where some shard may have applied a round and another one has not, because it lost its shares,
// all members run again, as a new round of the same closures: none joins it, and none is left out.
// Shards that have applied the old round answer that their part is done.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "coordinator/dispatch/rounds_policy.h"

namespace cairn {

class SynchronousPolicy final : public RoundsPolicy {
 public:
  explicit SynchronousPolicy(PolicyParts parts);

  void verify_members() const override;

 private:
  bool fits(const Closure& next) const override;
  void open(Round& round, std::int64_t steps) override;
  bool complete() const override;
  void before_applying() override;
  void not_applied(const Attempt& attempt) override;
  void leave_out(const std::shared_ptr<Closure>& closure);
  std::size_t spare_lanes() const;

  const std::uint32_t backups_;
};

}  // namespace cairn
