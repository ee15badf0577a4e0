// StagedRounds: what the members of rounds have pushed, each member's share for itself, until the
// coordinator has the sum of a round applied (Shard::apply_round).
//
// A shard believes no worker about which rounds there are: a share of any round is kept, within the
// bound on memory, and only the coordinator's word ends a round. So a wrong number in a push costs
// memory, and no other share.
//
// A share that comes again, from another run of its closure, takes the place of the first, slice by
// slice. Runs by one layout cut their pushes alike; when a run by a newer layout begins to push,
// all that came by an older one goes.
//   Thread  the shard's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "ps/shard/counters.h"
#include "ps/shard/requests.h"
#include "ps/shard/staging.h"

namespace cairn::ps {

// A push, or a slice of one, as it came: headers, ids and values end to end.
struct Share {
  std::vector<UpdateHeader> headers;
  std::vector<std::int64_t> ids;
  std::vector<std::byte> values;
  RowEncoding encoding = RowEncoding::kRaw;

  PushPiece piece() const { return {headers, ids, std::span<const std::byte>(values), nullptr}; }
};

// The books on rounds, besides their shares.
struct RoundBooks {
  std::uint64_t over = 0;           // the newest round that is over
  std::vector<std::uint64_t> lost;  // StagedRounds::has_lost(), ascending
};

class StagedRounds {
 public:
  // `bytes` says how much all that waits on the shard takes, pieces included (PieceStaging).
  StagedRounds(std::size_t bytes_max, ShardCounters::Number& bytes)
      : bytes_max_(bytes_max), bytes_(bytes) {}

  // The coordinator has ended this round, or a later one.
  bool over(std::uint64_t round) const { return round <= over_; }
  // Copies the push, which `pieces` are; not where it lies: its sender waits until that is let go,
  // and the round waits for the sender.
  // Returns what is kept; null: the push is of an outdated run. The pointer is valid until the next
  // call that is not const.
  //   Errors  ResourceExhausted: too much waits.
  const Share* keep(const PushRequest& push, std::span<const PushPiece> pieces);
  // The closure's shares of the round, in the order of the slices; empty if the closure has no rows
  // here. The pointers are valid until the next call that is not const.
  std::vector<const Share*> of(std::uint64_t round, std::uint64_t closure) const;
  // The round is over, and all before it: their shares go.
  void end(std::uint64_t round);

  // The shares that have rows of one of these variables go; none: all shares. Their rounds cannot
  // be completed: has_lost() says so of them, until they are over.
  void let_go(std::span<const VariableId> of);
  bool has_lost(std::uint64_t round) const { return lost_.contains(round); }
  void clear();  // a new session begins

  // ---- for copies of the shard ----
  RoundBooks books() const;
  void begin(const RoundBooks& books);  // without shares
  struct Kept {
    std::uint64_t round, closure, sent_layout;
    std::uint32_t slice;
    const Share* share;  // as of()'s
  };
  std::vector<Kept> all() const;

 private:
  struct Key {
    std::uint64_t round, closure;
    auto operator<=>(const Key&) const = default;
  };
  struct Member {
    std::uint64_t sent_layout = 0;
    std::map<std::uint32_t, Share> slices;
  };
  using Members = std::map<Key, Member>;
  Members::iterator drop(Members::iterator at);

  std::size_t bytes_max_;
  ShardCounters::Number& bytes_;
  Members members_;
  std::set<std::uint64_t> lost_;
  std::uint64_t over_ = 0;
};

// The sum of the shares in rows of one table, each row's in the order in which they were added.
class RowSum {
 public:
  RowSum(std::int64_t rows, std::int64_t dim)
      : rows_(static_cast<std::size_t>(rows)), dim_(static_cast<std::size_t>(dim)) {}

  void add_all(const float* values);
  // `ids` ascend, each once.
  void add_rows(std::span<const std::int64_t> ids, const float* values);

  bool whole() const { return whole_; }
  std::span<const std::int64_t> ids() const { return ids_; }  // empty where whole
  std::span<const float> values() const { return values_; }

 private:
  void widen();

  std::size_t rows_, dim_;
  bool whole_ = false;
  std::vector<std::int64_t> ids_;
  std::vector<float> values_;
};

}  // namespace cairn::ps
