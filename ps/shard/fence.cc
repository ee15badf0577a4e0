#include "ps/shard/fence.h"

#include <algorithm>

namespace cairn::ps {

void Fence::raise(LaneIncarnation newest, std::span<const LaneIncarnation> alive) {
  // Fences may arrive in another order than they were raised in. An incarnation that was shut out
  // once stays so, whatever an older or a newer word says of it, and those that are newer than the
  // word are kept as they are.
  std::set<LaneIncarnation> still;
  for (LaneIncarnation incarnation : alive)
    if (incarnation <= newest && !shuts_out(incarnation)) still.insert(incarnation);
  for (LaneIncarnation incarnation : alive_)
    // This word is older than what is known already.
    if (incarnation > newest) still.insert(incarnation);
  alive_ = std::move(still);
  end_ = std::max(end_, LaneIncarnation(newest.number + 1));
}

void Fence::clear() {
  end_ = {};
  alive_.clear();
}

}  // namespace cairn::ps
