#include "ps/staging.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace cairn::ps {
namespace {

constexpr std::size_t kPlaceBytes = 512;  // what a piece takes beside its content, generously: empty ones are no gift
constexpr std::size_t kPromising = 1 << 20;

std::size_t bytes_of(const PushRequest& piece) {
  return kPlaceBytes + piece.headers.size_bytes() + piece.ids.size_bytes() + piece.values.size_bytes();
}

template <typename T>
void append_to(std::vector<T>& to, std::span<const T> from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void StagedValues::append(std::span<const std::byte> values, std::size_t expected) {
  if (size_ + values.size() > memory_.bytes()) {
    Arena larger(std::max({size_ + values.size(), expected, 2 * size_}));
    if (size_ > 0) std::memcpy(larger.data(), memory_.data(), size_);
    memory_ = std::move(larger);
  }
  if (!values.empty()) std::memcpy(memory_.data() + size_, values.data(), values.size());
  size_ += values.size();
}

void StagedValues::overwrite(std::size_t begin, std::span<const std::byte> values) {
  CAIRN_CHECK(begin + values.size() <= size_, "staged values end at ", size_);
  if (!values.empty()) std::memcpy(memory_.data() + begin, values.data(), values.size());
}

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
  if (waiting.count == 0) {
    waiting.count = piece.pieces;
    waiting.encoding = piece.encoding;
  }
  if (waiting.count != piece.pieces || waiting.encoding != piece.encoding)
    throw InvalidArgumentError(str("closure ", piece.step.closure, " push ", piece.step.push_number,
                                   ": its pieces differ in their number or in their encoding"));
  waiting.last = now;
  if (piece.piece < waiting.ends.size()) {
    replace(key, waiting, piece);
    return std::nullopt;
  }
  if (const auto again = waiting.early.find(piece.piece); again != waiting.early.end()) {
    const std::size_t replaced = bytes_of(again->second.request());
    waiting.bytes -= replaced;
    bytes_ -= replaced;
    waiting.early.erase(again);
  }
  if (piece.piece == waiting.ends.size())
    append(waiting, piece);
  else
    waiting.early.try_emplace(piece.piece, piece);
  waiting.bytes += bytes;
  bytes_ += bytes;
  for (auto next = waiting.early.begin(); next != waiting.early.end() && next->first == waiting.ends.size(); next = waiting.early.erase(next))
    append(waiting, next->second.request());
  if (waiting.ends.size() < waiting.count) return std::nullopt;
  WholePush whole = std::move(waiting.whole);
  drop(waiting_.find(key));
  return whole;
}

void PieceStaging::append(Waiting& waiting, const PushRequest& piece) {
  WholePush& whole = waiting.whole;
  // Pieces are about as large as the first; small ones promise nothing. What is promised is address space, within the bound.
  const std::size_t promised = piece.values.size() >= kPromising ? waiting.count * piece.values.size() : 0;
  const std::size_t expected = std::min(promised, options_.bytes_max - std::min(options_.bytes_max, reserved_));
  whole.values.append(piece.values, expected);
  reserved_ += whole.values.capacity() - waiting.reserved;
  waiting.reserved = whole.values.capacity();
  append_to(whole.headers, piece.headers);
  append_to(whole.ids, piece.ids);
  waiting.ends.push_back({whole.headers.size(), whole.ids.size(), whole.values.size()});
}

// A run of the closure on the same worker sends the same rows again: their values may be others.
void PieceStaging::replace(const Key& key, Waiting& waiting, const PushRequest& piece) {
  const Ends begin = piece.piece == 0 ? Ends{} : waiting.ends[piece.piece - 1], end = waiting.ends[piece.piece];
  if (end.headers - begin.headers != piece.headers.size() || end.ids - begin.ids != piece.ids.size() || end.values - begin.values != piece.values.size()) {
    drop(waiting_.find(key));
    throw UnavailableError(str("closure ", piece.step.closure, " push ", piece.step.push_number, ": piece ", piece.piece,
                               " came before with another size; push all of it again"));
  }
  std::copy(piece.headers.begin(), piece.headers.end(), waiting.whole.headers.begin() + static_cast<std::ptrdiff_t>(begin.headers));
  std::copy(piece.ids.begin(), piece.ids.end(), waiting.whole.ids.begin() + static_cast<std::ptrdiff_t>(begin.ids));
  waiting.whole.values.overwrite(begin.values, piece.values);
}

void PieceStaging::drop(std::map<Key, Waiting>::iterator at) {
  bytes_ -= at->second.bytes;
  reserved_ -= at->second.reserved;
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
  while (!waiting_.empty()) drop(waiting_.begin());
  let_go_.clear();
}

}  // namespace cairn::ps
