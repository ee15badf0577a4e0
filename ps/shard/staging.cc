#include "ps/shard/staging.h"

#include "core/base/error.h"

namespace cairn::ps {
namespace {

struct Kept {
  std::vector<UpdateHeader> headers;
  std::vector<std::int64_t> ids;
  std::vector<std::byte> values;
  std::vector<std::span<const std::byte>> apart;
  std::shared_ptr<const void> owner;
};

// With an owner the values stay where they came. Without one they are copied; the room is reserved
// first, because the spans point into it.
PushValues keep_values(const PushRequest& piece, Kept& kept) {
  const auto [together, apart] = piece.values;
  kept.apart.assign(apart.begin(), apart.end());
  if (piece.owner == nullptr) {
    kept.values.reserve(piece.values.bytes());
    kept.values.assign(together.begin(), together.end());
    for (auto& one : kept.apart) {
      kept.values.insert(kept.values.end(), one.begin(), one.end());
      one = std::span(kept.values).last(one.size());
    }
  }
  if (!kept.apart.empty()) return std::span<const std::span<const std::byte>>(kept.apart);
  return piece.owner == nullptr ? kept.values : together;
}

}  // namespace

PushPiece keep(const PushRequest& piece) {
  auto kept = std::make_shared<Kept>();
  kept->headers.assign(piece.headers.begin(), piece.headers.end());
  kept->ids.assign(piece.ids.begin(), piece.ids.end());
  kept->owner = piece.owner;
  return {kept->headers, kept->ids, keep_values(piece, *kept), kept};
}

std::vector<PushPiece> PieceStaging::add(const PushRequest& piece, TimePoint now) {
  // At each piece and by no timer: pieces that wait do no harm until another one wants their room.
  expire(now);
  if (piece.pieces > options_.pieces_max || piece.piece >= piece.pieces)
    throw InvalidArgumentError(str("piece ", piece.piece, " of ", piece.pieces,
                                   ": a push has 1 to ", options_.pieces_max,
                                   " pieces, numbered from 0"));
  if (bytes_ + bytes_of(piece) > options_.bytes_max)
    throw ResourceExhaustedError(str("pieces of pushes that wait for the rest would take ",
                                     bytes_ + bytes_of(piece), " bytes, above the bound of ",
                                     options_.bytes_max, "; push less at a time"));
  const Key key{piece.step.closure, piece.step.push_number, piece.step.round,
                piece.step.incarnation};
  // Part of this push was given up. If its later pieces were taken in, they would wait for ever, or
  // be completed by pieces of a second attempt. One error asks the caller to send all of it anew.
  if (let_go_.erase(key) != 0)
    throw UnavailableError(str("closure ", piece.step.closure, " push ", piece.step.push_number,
                               ": its earlier pieces were let go, for they waited too long or a "
                               "restore came between; push all of it again"));
  PushPiece kept = keep(piece);
  Waiting& waiting = waiting_[key];
  if (waiting.count == 0) {
    waiting.count = piece.pieces;
    waiting.encoding = piece.encoding;
  }
  if (waiting.count != piece.pieces || waiting.encoding != piece.encoding)
    throw InvalidArgumentError(str("closure ", piece.step.closure, " push ", piece.step.push_number,
                                   ": its pieces differ in their number or in their encoding"));
  waiting.last = now;
  PushPiece& place = waiting.pieces[piece.piece];
  // A piece that comes twice takes the place of the first, which is the same push sent again. One
  // of another size belongs to another run of the closure, and the two cannot be mixed.
  if (place.kept != nullptr) {
    if (place.headers.size() != piece.headers.size() || place.ids.size() != piece.ids.size() ||
        place.values.bytes() != piece.values.bytes()) {
      drop(waiting_.find(key));
      throw UnavailableError(str("closure ", piece.step.closure, " push ", piece.step.push_number,
                                 ": piece ", piece.piece,
                                 " came before with another size; push all of it again"));
    }
    bytes_ -= bytes_of(place);
  }
  place = std::move(kept);
  bytes_ += bytes_of(place);
  if (waiting.pieces.size() < waiting.count) return {};
  std::vector<PushPiece> whole;
  whole.reserve(waiting.count);
  for (const auto& [number, one] : waiting.pieces) whole.push_back(one);
  drop(waiting_.find(key));
  return whole;
}

void PieceStaging::drop(std::map<Key, Waiting>::iterator at) {
  for (const auto& [number, piece] : at->second.pieces) bytes_ -= bytes_of(piece);
  waiting_.erase(at);
}

void PieceStaging::forget(const StepContext& step) {
  if (waiting_.empty()) return;
  auto at = waiting_.lower_bound({step.closure, step.push_number, 0, 0});
  while (at != waiting_.end() && at->first.closure == step.closure &&
         at->first.push_number == step.push_number && at->first.round <= step.round)
    drop(at++);
}

void PieceStaging::forget_fenced(const Fence& fence) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto next = std::next(at);
    if (fence.shuts_out(at->first.incarnation)) drop(at);
    at = next;
  }
}

void PieceStaging::expire(TimePoint now) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto next = std::next(at);
    if (now - at->second.last > options_.patience) let_go(at);
    at = next;
  }
}

void PieceStaging::let_go(std::map<Key, Waiting>::iterator at) {
  constexpr std::size_t kRememberedMax = 1 << 16;
  if (let_go_.size() >= kRememberedMax) let_go_.erase(let_go_.begin());  // the oldest closure's
  let_go_.insert(at->first);
  drop(at);
}

void PieceStaging::let_go_of_all() {
  while (!waiting_.empty()) let_go(waiting_.begin());
}

void PieceStaging::clear() {
  while (!waiting_.empty()) drop(waiting_.begin());
  let_go_.clear();
}

}  // namespace cairn::ps
