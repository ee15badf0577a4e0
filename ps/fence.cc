#include "ps/fence.h"

#include <algorithm>

namespace cairn::ps {

void Fence::raise(std::uint64_t newest, std::span<const std::uint64_t> alive) {
  std::set<std::uint64_t> still;
  for (std::uint64_t incarnation : alive)
    if (incarnation <= newest && !shuts_out(incarnation)) still.insert(incarnation);
  for (std::uint64_t incarnation : alive_)
    // this is older news than what is known already
    if (incarnation > newest) still.insert(incarnation);
  alive_ = std::move(still);
  end_ = std::max(end_, newest + 1);
}

void Fence::clear() {
  end_ = 0;
  alive_.clear();
}

}  // namespace cairn::ps
