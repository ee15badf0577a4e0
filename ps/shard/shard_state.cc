// Reads rows together with their optimizer slots, for a lane that keeps a copy of a variable.
#include <algorithm>

#include "core/base/error.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

VerifiedState Shard::read_state(const StateRequest& request) {
  StepContext step;
  step.session = request.session;
  verify_step(step);
  Table& table = find(request.variable, request.part);
  const std::string& name = table.spec().name;
  if (table.hashed())
    throw InvalidArgumentError(
        str("variable '", name, "' is hashed: it has no whole that a lane could hold a copy of"));
  if (request.begin < 0 || request.begin > table.rows() ||
      request.rows > static_cast<std::uint64_t>(table.rows() - request.begin))
    throw InvalidArgumentError(str("variable '", name, "': ", request.rows, " rows from ",
                                   request.begin, " on are asked for, of the ", table.rows(),
                                   " rows of this part (", table.range().begin, " to ",
                                   table.range().end, ")"));
  // A row may be larger than what callers are to ask for at once; even then the answer has a bound.
  const std::size_t bytes_max = request.rows > 1
                                    ? std::min(kStateBytesMax, options_.answer_bytes_max)
                                    : options_.answer_bytes_max;
  if (request.rows > bytes_max / std::max<std::size_t>(table.saved_row_bytes(), 1))
    throw InvalidArgumentError(
        str("variable '", name, "': ", request.rows, " rows of ", table.saved_row_bytes(),
            " bytes with their slots are more than ", bytes_max, " bytes: ask for fewer at once"));
  const WantedRows all{&table, {}, true};
  if (!waits_.always_here() && waits_.must_wait({&all, 1}))
    throw FailedPreconditionError(str("variable '", name,
                                      "' has rows that are not in this shard's ",
                                      "memory: a lane can hold no copy of it"));
  const VerifiedState state(table, {request.begin, request.begin + request.rows});
  ShardCounters::add(counters_.pulls.calls, 1);
  ShardCounters::add(counters_.pulls.rows, request.rows);
  ShardCounters::add(counters_.pulls.bytes, state.bytes());
  return state;
}

}  // namespace cairn::ps
