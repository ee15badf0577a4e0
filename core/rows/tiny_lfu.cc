#include "core/rows/tiny_lfu.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn {
namespace {

constexpr double kProtectedShare = 0.8;  // of the main part
// So many of the oldest rows of a part are asked whether they may leave.
constexpr int kAskedMax = 64;
// So many rows that were used go to the newest end when one is looked for.
constexpr int kRenewedMax = 256;

}  // namespace

TinyLfu::TinyLfu(Slot rows, double window_share) : sketch_(rows) {
  CAIRN_CHECK(rows > 0 && rows < kNone && window_share >= 0 && window_share <= 1, rows,
              " rows, a window of ", window_share);
  const double window = static_cast<double>(rows) * window_share;
  list(Part::kWindow).size_max = std::clamp(static_cast<Slot>(window), Slot{1}, rows);
  const Slot main = rows - list(Part::kWindow).size_max;
  list(Part::kProtected).size_max = static_cast<Slot>(static_cast<double>(main) * kProtectedShare);
  list(Part::kProbation).size_max = main;  // with what is protected
  nodes_.reserve(rows);
  parts_.reserve(rows);
  was_used_.reserve(rows);
}

TinyLfu::Slot TinyLfu::used() const {
  return list(Part::kWindow).size + list(Part::kProbation).size + list(Part::kProtected).size;
}
std::size_t TinyLfu::bytes() const {
  return nodes_.size() * (sizeof(Node) + sizeof(Part) + 1) + sketch_.bytes();
}

void TinyLfu::push(Part part, Slot slot) {
  List& to = list(part);
  nodes_[slot].newer = kNone;
  nodes_[slot].older = to.newest;
  (to.newest == kNone ? to.oldest : nodes_[to.newest].newer) = slot;
  to.newest = slot;
  ++to.size;
  parts_[slot] = part;
}

void TinyLfu::unlink(Slot slot) {
  List& from = list(parts_[slot]);
  const Node& node = nodes_[slot];
  (node.newer == kNone ? from.newest : nodes_[node.newer].older) = node.older;
  (node.older == kNone ? from.oldest : nodes_[node.older].newer) = node.newer;
  --from.size;
}

// The lists follow when a row has to leave.
void TinyLfu::use(Slot slot, std::uint64_t hash) {
  CAIRN_CHECK(holds(slot), "no row is in slot ", slot);
  sketch_.add(hash);
  was_used_[slot] = 1;
}

// A row that was used since it came into its list goes to the newest end: of the protected ones, if
// it was on probation.
void TinyLfu::renew(Slot slot) {
  was_used_[slot] = 0;
  const Part part = parts_[slot];
  unlink(slot);
  const List& guarded = list(Part::kProtected);
  if (part != Part::kProbation || guarded.size_max == 0) return push(part, slot);
  if (guarded.size >= guarded.size_max) {
    const Slot demoted = guarded.oldest;
    unlink(demoted);
    push(Part::kProbation, demoted);
  }
  push(Part::kProtected, slot);
}

TinyLfu::Slot TinyLfu::oldest(Part part, const MayLeave& may_leave) {
  int asked = 0, renewed = 0;
  for (Slot slot = list(part).oldest; slot != kNone && asked < kAskedMax;) {
    const Slot newer = nodes_[slot].newer;
    if (was_used_[slot] != 0 && renewed < kRenewedMax) {
      renew(slot);
      ++renewed;
    } else if (!may_leave || may_leave(slot)) {
      return slot;
    } else {
      ++asked;
    }
    slot = newer;
  }
  return kNone;
}

// The window's oldest, or the main part's if that was asked for less often. If they are equal the
// newcomer leaves, or a scan would empty the main part. A window that is not too large gives
// nothing up, unless it is all there is.
std::optional<TinyLfu::Slot> TinyLfu::choose(const MayLeave& may_leave) {
  const List& window = list(Part::kWindow);
  const Slot candidate = oldest(Part::kWindow, may_leave);
  Slot victim = oldest(Part::kProbation, may_leave);
  if (victim == kNone) victim = oldest(Part::kProtected, may_leave);
  if (candidate == kNone && victim == kNone) return std::nullopt;
  if (candidate == kNone || victim == kNone) return candidate == kNone ? victim : candidate;
  if (window.size <= window.size_max) return victim;
  if (sketch_.count(nodes_[candidate].hash) <= sketch_.count(nodes_[victim].hash)) return candidate;
  unlink(candidate);
  push(Part::kProbation, candidate);
  return victim;
}

void TinyLfu::enter(Slot slot, std::uint64_t hash) {
  CAIRN_CHECK(!holds(slot), "a row is in slot ", slot);
  sketch_.add(hash);
  if (slot >= nodes_.size()) {
    nodes_.resize(std::size_t{slot} + 1);
    parts_.resize(std::size_t{slot} + 1, Part::kFree);
    was_used_.resize(std::size_t{slot} + 1);
  }
  nodes_[slot].hash = hash;
  was_used_[slot] = 0;
  push(Part::kWindow, slot);
  // While the main part has room, it takes what the window has no place for.
  const Slot main = list(Part::kProbation).size + list(Part::kProtected).size;
  if (list(Part::kWindow).size <= list(Part::kWindow).size_max ||
      main >= list(Part::kProbation).size_max)
    return;
  const Slot moved = list(Part::kWindow).oldest;
  unlink(moved);
  push(Part::kProbation, moved);
}

void TinyLfu::prefetch(Slot slot, std::uint64_t hash) const {
  if (slot < was_used_.size()) __builtin_prefetch(&was_used_[slot], 1);
  if (slot < parts_.size()) __builtin_prefetch(&parts_[slot]);
  sketch_.prefetch(hash);
}

void TinyLfu::move(Slot from, Slot to) {
  CAIRN_CHECK(holds(from) && to < nodes_.size() && !holds(to), "slots ", from, " and ", to);
  const Node node = nodes_[to] = nodes_[from];
  const Part part = parts_[to] = parts_[from];
  (node.newer == kNone ? list(part).newest : nodes_[node.newer].older) = to;
  (node.older == kNone ? list(part).oldest : nodes_[node.older].newer) = to;
  was_used_[to] = was_used_[from];
  parts_[from] = Part::kFree;
}

void TinyLfu::remove(Slot slot) {
  CAIRN_CHECK(holds(slot), "no row is in slot ", slot);
  unlink(slot);
  parts_[slot] = Part::kFree;
}

}  // namespace cairn
