#include "ps/snapshot/departures.h"

#include <algorithm>
#include <iterator>

namespace cairn::ps {

void Departures::add(std::span<const std::int64_t> rows, To to) {
  if (tracks_ && !lost_) lost_ = !append(rows, to, since_);
}

void Departures::add_of_last_delta(std::span<const std::int64_t> rows) {
  if (!lost_before_) lost_before_ = !append(rows, To::kDisk, frozen_);
}

// False: there are too many, and none is known any more.
bool Departures::append(std::span<const std::int64_t> rows, To to, Log& log) const {
  if (log.size() + rows.size() > most_) keep_last(log);
  if (log.size() + rows.size() > most_) {
    log = {};
    return false;
  }
  for (const std::int64_t row : rows)
    log.push_back(static_cast<std::uint64_t>(row) * 2 + (to == To::kDisk ? 1 : 0));
  return true;
}

// Each row once, with what became of it last; then in the order of the rows.
void Departures::keep_last(Log& log) {
  std::ranges::stable_sort(log, {}, [](std::uint64_t one) { return one / 2; });
  auto to = log.begin();
  for (auto at = log.begin(); at != log.end(); ++at)
    if (std::next(at) == log.end() || *std::next(at) / 2 != *at / 2) *to++ = *at;
  log.erase(to, log.end());
}

void Departures::freeze(bool is_delta, Snapshot::Rows rows, Snapshot::Tracking tracking) {
  taken_ = false;
  if (!is_delta || rows == Snapshot::Rows::kChanged) {
    frozen_.clear();
    lost_before_ = false;
  }
  if (is_delta) {
    frozen_.insert(frozen_.end(), since_.begin(), since_.end());
    keep_last(frozen_);
  }
  gone_.clear();
  on_disk_.clear();
  for (const std::uint64_t one : frozen_)
    (one % 2 == 0 ? gone_ : on_disk_).push_back(static_cast<std::int64_t>(one / 2));
  if (tracking == Snapshot::Tracking::kGoesOn) return;
  since_ = {};
  lost_ = false;
  tracks_ = tracking == Snapshot::Tracking::kAnew;
}

std::size_t Departures::bytes() const {
  return (since_.capacity() + frozen_.capacity() + gone_.capacity() + on_disk_.capacity()) *
         sizeof(std::uint64_t);
}

}  // namespace cairn::ps
