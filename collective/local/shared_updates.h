// SharedUpdates: of what the members of a group push, one push.
//
// Replicas in sync run the same function and so push the same updates, each its own share of those
// that say so (Update::shares). A member passes what it would push, and gets what is to be applied,
// wherever the variables lie: on a copy of every member (group_store.h), in one place for all, or,
// sent by one member, on parameter servers.
//
//   All or none  An update is applied for all members or for none: if one of them leaves it out,
//                because a check of numerics stopped it, no member applies it; and if one member
//                fails before it comes here, the others' calls fail.
//   Order        Shares are added in the order of ranks, so that a run repeats bit for bit, and all
//                members get the same bits.
//   Cost         one exchange of a few numbers per push, which small values travel with; for each
//                other update with shares one more, or two if it is sparse, and a pass over the
//                rows of all members.
//   Errors       those of the group. InvalidArgument: shares of different shapes.
//   Thread       the member's.
#pragma once
#include <span>
#include <vector>

#include "collective/base/collective.h"
#include "core/rows/variable_store.h"

namespace cairn {

class SharedUpdates {
 public:
  // `group`, which outlives it: this member.
  explicit SharedUpdates(Collective& group) : group_(group) {}

  // Meets this call of all other members. kApplies: what this member is to apply, the same for all
  // that ask, but for updates without shares, which are its own. kTakesPart: nothing; it only gives
  // its shares. Valid until the next call; what it refers to may be other members' memory, until
  // this member calls applied().
  enum class Role : std::uint8_t { kApplies, kTakesPart };
  std::span<Update> merged(std::span<Update> own, Role role);
  // Meets the next call of all other members, be it this one or merged(): agrees with them before
  // anything is made, where the member's device makes some of the updates itself. Those have no
  // value. The member then calls merged() with the others that are not left out, unless there are
  // none.
  //   Result  as VariableStore::announce().
  std::vector<bool> announce(std::span<const Update> updates);
  // Returns when all members have called it: each has applied its updates, and no longer looks
  // at other members' memory.
  void applied() { group_.barrier(); }
  // Does what the last call gave refer to other members' memory, so that applied() must be called?
  bool shared() const { return shared_; }

  // A member's announcement of an update: which it is, and its value, if that is small.
  struct Told {
    std::int64_t variable = 0;
    std::int64_t shares = 0;
    std::span<const std::int64_t> value;
  };

 private:
  using Places = std::vector<std::size_t>;  // of an update in the members' lists, by rank
  void agree(std::span<const Update> own);
  std::vector<Places> agreed() const;
  bool all_inline(const Places& places) const;
  Update combined_inline(const Update& own, const Places& places) const;
  Update combined(const Update& own, Role role);

  Collective& group_;
  // The members' announcements, by rank, in its order, and the updates that they agree on.
  std::vector<Tensor> headers_;
  std::vector<std::vector<Told>> told_;
  std::vector<Places> agreed_;
  // By place in this member's list: the place in the list that is merged next; kNowhere: not there.
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  std::vector<std::size_t> pushed_at_;
  bool announced_ = false;  // and merged() follows
  std::vector<Update> merged_;
  bool shared_ = false;
};

}  // namespace cairn
