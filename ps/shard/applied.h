// Which pushes a shard has applied: what makes a retried closure land once.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace cairn::ps {

// All closures below the watermark, and these: half-open ranges of sequence numbers, ascending.
struct AppliedSet {
  std::uint64_t low_watermark = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> closures;
  bool operator==(const AppliedSet&) const = default;
};

// Everything that AppliedPushes knows, for a copy of the rows.
struct PushLedger {
  struct Push {
    std::uint32_t number = 0, slice = 0;
    std::uint64_t counter = 0;
    bool operator==(const Push&) const = default;
  };
  std::uint64_t low_watermark = 0, announced = 0;
  // Ascending; the pushes of each in the order in which they were applied.
  std::vector<std::pair<std::uint64_t, std::vector<Push>>> closures;
  bool operator==(const PushLedger&) const = default;
};

// The pushes of one session that a shard has applied. Thread: the shard's own. Memory: what lies
// above the watermark, at most `closures_max` closures.
//
// Only the coordinator says which closures there are, and below which watermark all are settled
// (announce). If a worker could, one wrong push would make every later one look like a duplicate:
// acknowledged and never applied.
class AppliedPushes {
 public:
  explicit AppliedPushes(std::size_t closures_max = std::size_t{1} << 20)
      : closures_max_(closures_max) {}

  std::uint64_t low_watermark() const { return low_; }
  // There are closures below `closures_below`, and those below `settled_below` have ended. Neither
  // goes back.
  //   Errors  InvalidArgument: more have ended than there are.
  void announce(std::uint64_t closures_below, std::uint64_t settled_below);
  // InvalidArgument: a closure that was not announced.
  void verify_announced(std::uint64_t closure) const;
  // Applied, or below the watermark: to be refused as a duplicate.
  bool contains(std::uint64_t closure, std::uint32_t push_number, std::uint32_t slice) const;
  // Whether any slice of the push was.
  bool begun(std::uint64_t closure, std::uint32_t push_number) const;
  // How many pushes of `closure` itself were applied after the shard's counter stood at `counter`.
  std::uint64_t own_since(std::uint64_t closure, std::uint64_t counter) const;
  // ResourceExhausted: no room for a further closure; the coordinator's watermark stands still.
  void check_room(std::uint64_t closure) const;
  // `counter`: the shard's, after the push; 0 for a slice that it does not count, since another one
  // of the push came first.
  void add(std::uint64_t closure, std::uint32_t push_number, std::uint32_t slice,
           std::uint64_t counter);
  // All of its pushes, however many it has: it was a member of a round that was applied.
  void add_whole(std::uint64_t closure) { add(closure, kEveryPush, 0, 0); }
  // As at the cut, where every closure is in whole or not at all.
  AppliedSet snapshot() const;
  // `set` alone, or besides what was applied.
  // Errors  InvalidArgument: not ascending, or more than there is room for.
  void restore(const AppliedSet& set);
  void merge(const AppliedSet& set);
  void clear();
  PushLedger ledger() const;
  // All that this knew is forgotten.   Errors  InvalidArgument: as of restore().
  void take(const PushLedger& ledger);

 private:
  void verify(const AppliedSet& set) const;
  void raise_watermark(std::uint64_t low);
  static constexpr std::uint32_t kEveryPush = UINT32_MAX;
  std::size_t closures_max_;
  std::uint64_t low_ = 0;
  std::uint64_t announced_ = 0;
  std::map<std::uint64_t, std::vector<PushLedger::Push>> above_;
};

}  // namespace cairn::ps
