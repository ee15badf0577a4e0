#include "coordinator/cluster/flapping.h"

#include <algorithm>

#include "coordinator/cluster/dialer.h"

namespace cairn {

void Flapping::lost(TimePoint now, std::uint64_t done, bool wanted) {
  if (losses_ == 0 || done > done_ || !wanted) {
    losses_ = 0;
    since_ = now;
  }
  ++losses_;
  done_ = done;
}

Duration Flapping::pause() const {
  if (losses_ < 2) return Duration(0);
  const std::size_t doubled = std::min<std::size_t>(losses_ - 2, 20);
  return std::min<Duration>(kBackoffFirst * (std::int64_t{1} << doubled), kPauseMax);
}

}  // namespace cairn
