// Pushes that come in pieces wait here until the last one is there.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/base/clock.h"
#include "core/base/incarnation.h"
#include "ps/shard/counters.h"
#include "ps/shard/fence.h"
#include "ps/shard/requests.h"

namespace cairn::ps {

struct StagingOptions {
  std::size_t bytes_max = std::size_t{1} << 30;  // of all that waits on a shard
  std::uint32_t pieces_max = 1 << 16;            // of one push; as many slices
  // without a further piece; then its worker is taken for dead
  Duration patience = std::chrono::seconds(60);
};

// Updates of some rows, with the rows' ids and values. The spans refer to memory that the caller
// keeps, or that `kept` does.
struct PushPiece {
  std::span<const UpdateHeader> headers;
  std::span<const std::int64_t> ids;
  PushValues values;
  std::shared_ptr<const void> kept;
};

// The push as a piece that may outlive its message: copies the headers and ids, and the values too
// unless their memory can be kept (PushRequest::owner).
PushPiece keep(const PushRequest& push);
// Bytes that a push, or a piece of one, takes with its content; an empty one counts as 512 too.
template <typename Piece>
std::size_t bytes_of(const Piece& piece) {
  constexpr std::size_t kPlaceBytes = 512;
  return kPlaceBytes + piece.headers.size_bytes() + piece.ids.size_bytes() + piece.values.bytes();
}

// Thread: the shard's own.
class PieceStaging {
 public:
  // `bytes` says how much waits.
  PieceStaging(StagingOptions options, ShardCounters::Number& bytes)
      : options_(options), bytes_(bytes) {}

  // Takes a piece in; all of them in their order if it was the last one missing. A piece that comes
  // again, from another run of the closure, replaces the first.
  //   Errors  InvalidArgument: pieces that contradict each other; ResourceExhausted: too much is
  //           waiting; Unavailable: earlier pieces of this push were let go, or this one came
  //           before with another size: send all of them again.
  //   Cost    keep()
  std::vector<PushPiece> add(const PushRequest& piece, TimePoint now);
  // Lets go of what waits of this push, from any worker; not of what a later round's run of the
  // closure has begun to push.
  void forget(const StepContext& step);
  void forget_fenced(const Fence& fence);
  void expire(TimePoint now);
  void let_go_of_all();  // the next piece of each push is refused
  void clear();

 private:
  struct Key {
    std::uint64_t closure;
    std::uint32_t push_number;
    std::uint64_t round;          // a run that was left out may still push beside its next one
    LaneIncarnation incarnation;  // a retry by another worker begins afresh
    auto operator<=>(const Key&) const = default;
  };
  struct Waiting {
    std::map<std::uint32_t, PushPiece> pieces;  // by number
    std::uint32_t count = 0;                    // that there are to be
    RowEncoding encoding = RowEncoding::kRaw;
    TimePoint last{};
  };
  void drop(std::map<Key, Waiting>::iterator at);
  void let_go(std::map<Key, Waiting>::iterator at);

  StagingOptions options_;
  std::map<Key, Waiting> waiting_;
  // Pushes whose early pieces were let go. Their senders had answers for those pieces, so the next
  // piece must be refused.
  std::set<Key> let_go_;
  ShardCounters::Number& bytes_;
};

}  // namespace cairn::ps
