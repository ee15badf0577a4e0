// Rounds on the wire. For this room's .cc files.
#pragma once
#include <vector>

#include "core/graph/wire/wire.h"
#include "service/dispatcher/round_book.h"
#include "service/service.capnp.h"

namespace cairn::service {

// More than a consumer has ahead.
inline constexpr unsigned kRoundsMax = 1u << 16;

inline std::vector<Round> read_rounds(capnp::List<wire::DataRound>::Reader in) {
  std::vector<Round> rounds;
  for (auto round : wire::bounded(in, kRoundsMax, "rounds"))
    rounds.push_back(
        {{wire::read_name(round.getWorker().getAddress()), round.getWorker().getIncarnation()},
         round.getNumber()});
  return rounds;
}

// `rounds`: as many as there is room for.
template <typename Rounds>
void write(capnp::List<wire::DataRound>::Builder out, const Rounds& rounds) {
  unsigned at = 0;
  for (const Round& round : rounds) {
    out[at].initWorker().setAddress(round.worker.address);
    out[at].getWorker().setIncarnation(round.worker.incarnation.number);
    out[at++].setNumber(round.number);
  }
}

}  // namespace cairn::service
