#include "core/rows/tiny_lfu.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn {
namespace {

constexpr double kProtectedShare = 0.8;  // of the main part
// So many of the oldest rows of a part are asked whether they may leave.
constexpr int kAskedMax = 64;

}  // namespace

TinyLfu::TinyLfu(Slot slots, double window_share) : nodes_(slots), parts_(slots), sketch_(slots) {
  CAIRN_CHECK(slots > 0 && slots < kNone && window_share >= 0 && window_share <= 1, slots,
              " slots, a window of ", window_share);
  const double window = static_cast<double>(slots) * window_share;
  list(Part::kWindow).size_max = std::clamp(static_cast<Slot>(window), Slot{1}, slots);
  const Slot main = slots - list(Part::kWindow).size_max;
  list(Part::kProtected).size_max = static_cast<Slot>(static_cast<double>(main) * kProtectedShare);
  list(Part::kProbation).size_max = main;  // what is not protected
  for (Slot slot = slots; slot-- > 0;) push(Part::kFree, slot);
}

TinyLfu::Slot TinyLfu::used() const { return slots() - list(Part::kFree).size; }
std::size_t TinyLfu::bytes() const {
  return nodes_.size() * (sizeof(Node) + sizeof(Part)) + sketch_.bytes();
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

void TinyLfu::use(Slot slot, std::uint64_t hash) {
  sketch_.add(hash);
  const Part part = parts_[slot];
  CAIRN_CHECK(part != Part::kFree, "no row is in slot ", slot);
  unlink(slot);
  const List& guarded = list(Part::kProtected);
  if (part == Part::kProbation && guarded.size_max > 0) {
    if (guarded.size == guarded.size_max) {
      const Slot demoted = guarded.oldest;
      unlink(demoted);
      push(Part::kProbation, demoted);
    }
    push(Part::kProtected, slot);
  } else {
    push(part, slot);
  }
}

TinyLfu::Slot TinyLfu::oldest(Part part, const MayLeave& may_leave) const {
  int asked = 0;
  for (Slot slot = list(part).oldest; slot != kNone && asked < kAskedMax; ++asked) {
    if (!may_leave || may_leave(slot)) return slot;
    slot = nodes_[slot].newer;
  }
  return kNone;
}

// The row that leaves: the window's oldest, or the main part's if that was asked for less often.
// If they are equal the newcomer leaves, or a scan would empty the main part.
TinyLfu::Slot TinyLfu::choose(const MayLeave& may_leave) {
  const Slot candidate = oldest(Part::kWindow, may_leave);
  Slot victim = oldest(Part::kProbation, may_leave);
  if (victim == kNone) victim = oldest(Part::kProtected, may_leave);
  if (candidate == kNone || victim == kNone) return candidate == kNone ? victim : candidate;
  if (sketch_.count(nodes_[candidate].hash) <= sketch_.count(nodes_[victim].hash)) return candidate;
  unlink(candidate);
  push(Part::kProbation, candidate);
  return victim;
}

std::optional<TinyLfu::Entered> TinyLfu::enter(std::uint64_t hash, const MayLeave& may_leave) {
  sketch_.add(hash);
  Slot slot = list(Part::kFree).newest;
  const bool evicts = slot == kNone;
  if (evicts) slot = choose(may_leave);
  if (slot == kNone) return std::nullopt;
  unlink(slot);
  nodes_[slot].hash = hash;
  push(Part::kWindow, slot);
  // While there are free slots, or where the main part gave a row up because the window's may not
  // leave, the main part takes what the window has no place for.
  if (list(Part::kWindow).size > list(Part::kWindow).size_max) {
    const Slot moved = list(Part::kWindow).oldest;
    unlink(moved);
    push(Part::kProbation, moved);
  }
  return Entered{slot, evicts};
}

void TinyLfu::remove(Slot slot) {
  CAIRN_CHECK(parts_[slot] != Part::kFree, "no row is in slot ", slot);
  unlink(slot);
  push(Part::kFree, slot);
}

}  // namespace cairn
