#include "ps/staging.h"

#include <cstring>

#include "core/error.h"

namespace cairn::ps {
namespace {

constexpr std::size_t kPlaceBytes = 512;  // what a piece takes beside its content, generously: empty ones are no gift

std::size_t bytes_of(const PushRequest& piece) {
  return kPlaceBytes + piece.headers.size_bytes() + piece.ids.size_bytes() + piece.values.size_bytes();
}

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::optional<WholePush> PieceStaging::add(const PushRequest& piece, TimePoint now) {
  expire(now);
  if (piece.pieces > options_.pieces_max || piece.piece >= piece.pieces)
    throw InvalidArgumentError(str("piece ", piece.piece, " of ", piece.pieces, ": a push has 1 to ", options_.pieces_max,
                                   " pieces, numbered from 0"));
  const std::size_t bytes = bytes_of(piece);
  if (bytes_ + bytes > options_.bytes_max)
    throw ResourceExhaustedError(str("pieces of pushes that wait for the rest would take ", bytes_ + bytes, " bytes, above the bound of ",
                                     options_.bytes_max, "; push less at a time"));
  const Key key{piece.step.closure, piece.step.push_number, piece.step.incarnation};
  if (let_go_.erase(key) != 0)
    throw UnavailableError(str("closure ", piece.step.closure, " push ", piece.step.push_number,
                               ": its earlier pieces were let go, for they waited too long or a restore came between; push all of it again"));
  Waiting& waiting = waiting_[key];
  if (waiting.pieces.empty()) {
    waiting.count = piece.pieces;
    waiting.encoding = piece.encoding;
  }
  if (waiting.count != piece.pieces || waiting.encoding != piece.encoding)
    throw InvalidArgumentError(str("closure ", piece.step.closure, " push ", piece.step.push_number,
                                   ": its pieces differ in their number or in their encoding"));
  waiting.last = now;
  const auto [at, first] = waiting.pieces.try_emplace(piece.piece);
  WholePush& place = at->second;
  const std::size_t replaced = first ? 0 : bytes_of({.headers = place.headers, .ids = place.ids, .values = place.values});
  place.headers.assign(piece.headers.begin(), piece.headers.end());
  place.ids.assign(piece.ids.begin(), piece.ids.end());
  place.values.assign(piece.values.begin(), piece.values.end());
  waiting.bytes += bytes - replaced;
  bytes_ += bytes - replaced;
  if (waiting.pieces.size() < waiting.count) return std::nullopt;
  WholePush whole = join(waiting);
  drop(waiting_.find(key));
  return whole;
}

WholePush PieceStaging::join(const Waiting& waiting) {
  WholePush whole;
  std::size_t ids = 0, values = 0;
  for (const auto& [number, piece] : waiting.pieces) {
    ids += piece.ids.size();
    values += piece.values.size();
  }
  whole.ids.reserve(ids);
  whole.values.reserve(values);
  for (const auto& [number, piece] : waiting.pieces) {
    append(whole.headers, piece.headers);
    append(whole.ids, piece.ids);
    append(whole.values, piece.values);
  }
  return whole;
}

void PieceStaging::drop(std::map<Key, Waiting>::iterator at) {
  bytes_ -= at->second.bytes;
  waiting_.erase(at);
}

void PieceStaging::forget(std::uint64_t closure, std::uint32_t push_number) {
  if (waiting_.empty()) return;
  auto at = waiting_.lower_bound({closure, push_number, 0});
  while (at != waiting_.end() && at->first.closure == closure && at->first.push_number == push_number) drop(at++);
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
  waiting_.clear();
  let_go_.clear();
  bytes_ = 0;
}

}  // namespace cairn::ps
