// Pushes that come in pieces wait here until the last one is there.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/clock.h"
#include "ps/arena.h"
#include "ps/fence.h"
#include "ps/requests.h"

namespace cairn::ps {

struct StagingOptions {
  std::size_t bytes_max = std::size_t{1} << 30;  // of all that waits on a shard
  std::uint32_t pieces_max = 1 << 16;            // of one push
  Duration patience = std::chrono::seconds(60);  // without a further piece; then its worker is taken for dead
};

// Values of pieces, end to end, on huge pages: fresh memory of a hundred megabytes costs more to fault in than to fill.
class StagedValues {
 public:
  // Behind what is there. Where there is no room it makes some, for `expected` bytes in all if that is more.
  void append(std::span<const std::byte> values, std::size_t expected);
  void overwrite(std::size_t begin, std::span<const std::byte> values);
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return memory_.bytes(); }
  operator std::span<const std::byte>() const { return {memory_.data(), size_}; }

 private:
  Arena memory_;
  std::size_t size_ = 0;
};

// A push whose pieces are all there, end to end.
struct WholePush {
  std::vector<UpdateHeader> headers;
  std::vector<std::int64_t> ids;
  StagedValues values;
};

// Thread: the shard's own.
class PieceStaging {
 public:
  explicit PieceStaging(StagingOptions options) : options_(options) {}

  // Takes a piece in; the whole push if it was the last one missing. A piece that comes again replaces the first.
  //   Errors  InvalidArgument: pieces that contradict each other; ResourceExhausted: too much is waiting;
  //           Unavailable: earlier pieces of this push were let go, or this one came before with another size: send all of them again.
  //   Cost    one copy of the values where pieces come in order, as they do on a connection; two of those that come early.
  std::optional<WholePush> add(const PushRequest& piece, TimePoint now);
  // Lets go of what waits of this push, from any worker.
  void forget(std::uint64_t closure, std::uint32_t push_number);
  void forget_fenced(const Fence& fence);
  void expire(TimePoint now);
  void let_go_of_all();  // their senders are told at the next piece
  void clear();
  std::size_t bytes() const { return bytes_; }

 private:
  struct Key {
    std::uint64_t closure;
    std::uint32_t push_number;
    std::uint64_t incarnation;  // a retry by another worker begins afresh
    auto operator<=>(const Key&) const = default;
  };
  struct Piece {  // one that is ahead of others
    explicit Piece(const PushRequest& from)
        : headers(from.headers.begin(), from.headers.end()), ids(from.ids.begin(), from.ids.end()), values(from.values.begin(), from.values.end()) {}
    PushRequest request() const { return {.headers = headers, .ids = ids, .values = values}; }
    std::vector<UpdateHeader> headers;
    std::vector<std::int64_t> ids;
    std::vector<std::byte> values;
  };
  struct Ends {  // of a piece in the whole
    std::size_t headers = 0, ids = 0, values = 0;
  };
  struct Waiting {
    WholePush whole;          // the pieces up to the first that is missing
    std::vector<Ends> ends;   // theirs
    std::map<std::uint32_t, Piece> early;
    std::uint32_t count = 0;  // of pieces that there are to be
    Encoding encoding = Encoding::kRaw;
    std::size_t bytes = 0;
    std::size_t reserved = 0;
    TimePoint last{};
  };
  void append(Waiting& waiting, const PushRequest& piece);
  void replace(const Key& key, Waiting& waiting, const PushRequest& piece);
  void drop(std::map<Key, Waiting>::iterator at);
  void let_go(std::map<Key, Waiting>::iterator at);

  StagingOptions options_;
  std::map<Key, Waiting> waiting_;
  std::set<Key> let_go_;  // a sender that has had answers for them must not take the push for complete
  std::size_t bytes_ = 0;
  std::size_t reserved_ = 0;  // by the values of what waits
};

}  // namespace cairn::ps
