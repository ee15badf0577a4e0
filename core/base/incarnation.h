// Incarnations: numbers that tell one life of a thing from the next under the same name. There are
// three kinds, each a type of its own, so that none is compared with another by mistake.
//   Thread  any: these are plain numbers.
#pragma once
#include <compare>
#include <cstdint>
#include <ostream>

namespace cairn {

template <typename Of>
struct Incarnation {
  std::uint64_t number = 0;  // 0: none

  constexpr Incarnation() = default;
  constexpr Incarnation(std::uint64_t of) : number(of) {}  // NOLINT(google-explicit-constructor)
  friend constexpr auto operator<=>(const Incarnation&, const Incarnation&) = default;
  friend std::ostream& operator<<(std::ostream& out, Incarnation of) { return out << of.number; }
};

// Of a process: drawn at random when it starts, and told in the hello. A ps or a worker at the same
// address with another one was restarted, and has nothing of what the earlier one had.
using ProcessIncarnation = Incarnation<struct OfProcess>;

// Of a coordinator's connection to a lane: numbered upwards by the coordinator. Pushes carry it,
// and a fence on the shards names those that are still listened to (ps/fence.h).
using LaneIncarnation = Incarnation<struct OfLane>;

// Of a shard's rows: the number of its process at first, and another one after every restore, so
// that what was computed from rows that are gone is known by it.
using ShardIncarnation = Incarnation<struct OfShard>;

}  // namespace cairn
