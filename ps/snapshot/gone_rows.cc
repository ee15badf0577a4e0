#include "ps/snapshot/gone_rows.h"

#include <algorithm>

namespace cairn::ps {

void GoneRows::freeze(bool is_delta, Snapshot::Rows rows, Snapshot::Tracking tracking) {
  taken_ = false;
  if (!is_delta || rows == Snapshot::Rows::kChanged) frozen_.clear();
  if (is_delta) {
    frozen_.insert(frozen_.end(), since_.begin(), since_.end());
    std::ranges::sort(frozen_);
    frozen_.erase(std::unique(frozen_.begin(), frozen_.end()), frozen_.end());
  }
  if (tracking == Snapshot::Tracking::kGoesOn) return;
  since_.clear();
  lost_ = false;
  tracks_ = tracking == Snapshot::Tracking::kAnew;
}

}  // namespace cairn::ps
