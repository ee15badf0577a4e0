// Pushes that come in pieces wait here until the last one is there.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/clock.h"
#include "ps/fence.h"
#include "ps/requests.h"

namespace cairn::ps {

struct StagingOptions {
  std::size_t bytes_max = std::size_t{1} << 30;  // of all that waits on a shard
  std::uint32_t pieces_max = 1 << 16;            // of one push
  Duration patience = std::chrono::seconds(60);  // without a further piece; then its worker is taken for dead
};

// A push whose pieces are all there, end to end.
struct WholePush {
  std::vector<UpdateHeader> headers;
  std::vector<std::int64_t> ids;
  std::vector<std::byte> values;
};

// Thread: the shard's own.
class PieceStaging {
 public:
  explicit PieceStaging(StagingOptions options) : options_(options) {}

  // Takes a piece in; the whole push if it was the last one missing. A piece that comes again replaces the first.
  //   Errors  InvalidArgument: pieces that contradict each other; ResourceExhausted: too much is waiting;
  //           Unavailable: earlier pieces of this push were let go: send all of them again.
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
  struct Waiting {
    std::map<std::uint32_t, WholePush> pieces;  // those that came
    std::uint32_t count = 0;                    // that there are to be
    Encoding encoding = Encoding::kRaw;
    std::size_t bytes = 0;
    TimePoint last{};
  };
  void drop(std::map<Key, Waiting>::iterator at);
  void let_go(std::map<Key, Waiting>::iterator at);
  static WholePush join(const Waiting& waiting);

  StagingOptions options_;
  std::map<Key, Waiting> waiting_;
  std::set<Key> let_go_;  // a sender that has had answers for them must not take the push for complete
  std::size_t bytes_ = 0;
};

}  // namespace cairn::ps
