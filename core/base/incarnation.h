// Incarnations: numbers that tell one life of a thing from the next under the same name. Each kind
// is a type of its own, so that none is compared with another by mistake.
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

// A process draws its incarnation at random when it starts, and sends it in the hello. If a ps or a
// worker at the same address has another one, it was restarted and has lost its earlier state.
using ProcessIncarnation = Incarnation<struct OfProcess>;

// A coordinator numbers its connections to a lane upwards. Pushes carry their connection's number,
// and a fence on the shards names those numbers that are still accepted (ps/shard/fence.h).
using LaneIncarnation = Incarnation<struct OfLane>;

// A shard's rows are of one lineage for as long as each state of them follows from the one before
// by updates alone. It begins with the number of the process that made the rows, and a restore
// begins another one, so that results computed from rows that are gone are recognised. A process
// that takes over the rows of another one as they are goes on with their lineage.
using Lineage = Incarnation<struct OfRows>;

// Each coordinator of a session has a term, and a successor's term is higher than those before it.
// Tasks refuse the calls of a coordinator whose term is over.
using Term = Incarnation<struct OfCoordinator>;

// Each process that answers for a shard's rows does so in an epoch, which the coordinator numbers
// upwards. A shard refuses calls that name an older epoch than its own.
using Epoch = Incarnation<struct OfPrimary>;

}  // namespace cairn
