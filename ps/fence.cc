#include "ps/fence.h"

#include <algorithm>

namespace cairn::ps {

void Fence::raise(std::uint64_t newest, std::span<const std::uint64_t> alive) {
  // Fences may arrive in another order than they were raised in. An incarnation that was shut out
  // once stays so, whatever an older or a newer word says of it, and those that are newer than the
  // word are kept as they are.
  std::set<std::uint64_t> still;
  for (std::uint64_t incarnation : alive)
    if (incarnation <= newest && !shuts_out(incarnation)) still.insert(incarnation);
  for (std::uint64_t incarnation : alive_)
    // This word is older than what is known already.
    if (incarnation > newest) still.insert(incarnation);
  alive_ = std::move(still);
  end_ = std::max(end_, newest + 1);
}

void Fence::clear() {
  end_ = 0;
  alive_.clear();
}

}  // namespace cairn::ps
