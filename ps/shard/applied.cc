#include "ps/shard/applied.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn::ps {

// Below the watermark every closure is settled: a push that still arrives for one is repeated, or
// late. Above the watermark a closure from a checkpoint has kEveryPush in place of its pushes: the
// cut held the closure whole, and does not list which pushes it had.
bool AppliedPushes::contains(std::uint64_t closure, std::uint32_t push_number,
                             std::uint32_t slice) const {
  if (closure < low_) return true;
  const auto found = above_.find(closure);
  if (found == above_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(),
                     [push_number, slice](const PushLedger::Push& one) {
                       return (one.number == push_number && one.slice == slice) ||
                              one.number == kEveryPush;
                     });
}

// A push that comes in slices counts the shard's version up once, with the slice that comes first.
bool AppliedPushes::begun(std::uint64_t closure, std::uint32_t push_number) const {
  const auto found = above_.find(closure);
  if (found == above_.end()) return false;
  return std::any_of(
      found->second.begin(), found->second.end(),
      [push_number](const PushLedger::Push& one) { return one.number == push_number; });
}

// A closure with several waves of updates finds its own earlier pushes in the shard's counter. They
// are not staleness. A slice that was not counted has the counter 0, and is left out by itself.
std::uint64_t AppliedPushes::own_since(std::uint64_t closure, std::uint64_t counter) const {
  const auto found = above_.find(closure);
  if (found == above_.end()) return 0;
  return static_cast<std::uint64_t>(
      std::count_if(found->second.begin(), found->second.end(),
                    [counter](const PushLedger::Push& one) { return one.counter > counter; }));
}

// The bound guards the shard's memory against a coordinator that never settles anything. It is
// asked before a push is applied: to forget one instead would let its repetition land twice.
void AppliedPushes::check_room(std::uint64_t closure) const {
  if (above_.size() >= closures_max_ && above_.find(closure) == above_.end())
    throw ResourceExhaustedError(str("a shard remembers at most ", closures_max_,
                                     " closures above the low watermark, which stands at ", low_,
                                     ": the coordinator has to raise it as closures end"));
}

void AppliedPushes::add(std::uint64_t closure, std::uint32_t push_number, std::uint32_t slice,
                        std::uint64_t counter) {
  above_[closure].push_back({push_number, slice, counter});
}

void AppliedPushes::announce(std::uint64_t closures_below, std::uint64_t settled_below) {
  if (settled_below > closures_below)
    throw InvalidArgumentError(str("of the closures below ", closures_below, " those below ",
                                   settled_below, " are said to have ended"));
  // Announcements may overtake one another, and an older one takes nothing back.
  announced_ = std::max(announced_, closures_below);
  raise_watermark(settled_below);
}

void AppliedPushes::verify_announced(std::uint64_t closure) const {
  if (closure >= announced_)
    throw InvalidArgumentError(
        str("closure ", closure, " is unknown here: the coordinator has announced closures below ",
            announced_, " to this shard; only a closure that it sent may push"));
}

// Closures below the watermark need no entries of their own, and an ordered map erases all of these
// entries in one call.
void AppliedPushes::raise_watermark(std::uint64_t low) {
  if (low <= low_) return;
  low_ = low;
  above_.erase(above_.begin(), above_.lower_bound(low));
}

// The map ascends, so that neighbours join to ranges as they come. A cut is made when every closure
// is applied as a whole or not at all, and its single pushes are of no interest.
AppliedSet AppliedPushes::snapshot() const {
  AppliedSet set{low_, {}};
  for (const auto& [closure, pushes] : above_) {
    if (!set.closures.empty() && set.closures.back().second == closure)
      ++set.closures.back().second;
    else
      set.closures.emplace_back(closure, closure + 1);
  }
  return set;
}

void AppliedPushes::verify(const AppliedSet& set) const {
  std::uint64_t count = 0, last = 0;
  for (const auto& [begin, end] : set.closures) {
    if (begin >= end || begin < last)
      throw InvalidArgumentError("the applied set's ranges are not ascending");
    last = end;
    count += end - begin;
    if (count > closures_max_)
      throw InvalidArgumentError(str("the applied set has more than ", closures_max_, " closures"));
  }
}

void AppliedPushes::restore(const AppliedSet& set) {
  verify(set);
  // Verified first, so that a set that is refused leaves the present one as it was.
  low_ = 0;
  above_.clear();
  merge(set);
}

void AppliedPushes::merge(const AppliedSet& set) {
  verify(set);
  raise_watermark(set.low_watermark);
  for (const auto& [begin, end] : set.closures)
    // The counter 0 keeps these out of own_since(): they were counted by another process, or before
    // the restore.
    for (std::uint64_t closure = std::max(begin, low_); closure < end; ++closure)
      if (!contains(closure, kEveryPush, 0)) add(closure, kEveryPush, 0, 0);
}

PushLedger AppliedPushes::ledger() const {
  return {low_, announced_, {above_.begin(), above_.end()}};
}

void AppliedPushes::take(const PushLedger& ledger) {
  if (ledger.closures.size() > closures_max_)
    throw InvalidArgumentError(str("a ledger of ", ledger.closures.size(),
                                   " closures: a shard remembers at most ", closures_max_));
  std::uint64_t next = ledger.low_watermark;
  for (const auto& [closure, pushes] : ledger.closures) {
    if (closure < next || pushes.empty())
      throw InvalidArgumentError(str("a ledger in which closure ", closure,
                                     " is not above the one before it, or has no ", "push"));
    next = closure + 1;
  }
  low_ = ledger.low_watermark;
  announced_ = ledger.announced;
  above_ = {ledger.closures.begin(), ledger.closures.end()};
}

void AppliedPushes::clear() {
  low_ = announced_ = 0;
  above_.clear();
}

}  // namespace cairn::ps
