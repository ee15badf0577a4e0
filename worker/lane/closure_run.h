// Messages to a lane and back, in memory. The schema is rpc/cairn.capnp: ClosureRun,
// ClosureResult.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace cairn::worker {

using PipelineId = std::uint64_t;
using FunctionId = std::uint32_t;

// Elements [ordinal, ordinal + count) of a pipeline. A lane whose iterator does not stand there
// opens one at `state`, which stands at `state_ordinal` <= ordinal.
struct Take {
  PipelineId pipeline = 0;
  std::uint64_t ordinal = 0;
  std::uint32_t count = 0;
  std::uint64_t state_ordinal = 0;
  std::vector<std::byte> state;  // empty: the beginning
};

struct ClosureRun {
  std::uint64_t sequence = 0;
  FunctionId function = 0;
  std::vector<Tensor> arguments;
  std::vector<Take> takes;  // one an iterator argument
  std::int64_t global_step = 0;
  std::uint64_t sent_layout = 0;  // by which it was sent: the lane needs this one, or a newer one
  // Its pushes are shares of this round, in which it has this number; round 0: of none.
  std::uint64_t round = 0;
  std::int32_t member = 0;
  // It runs as a member of this group of lanes, which keeps variables in step; copies of round
  // `base` are as the ps have them, 0: none is. Group 0: in none.
  std::uint64_t group = 0;
  std::uint64_t base = 0;
  bool ahead = false;  // that round is not applied yet: only copies of it will do
};

// A pipeline's position after a take.
struct Position {
  std::uint64_t ordinal = 0;
  std::vector<std::byte> state;
  std::uint64_t skipped = 0;  // bad rows passed over so far
};

struct ClosureResult {
  std::uint64_t sequence = 0;
  // how it failed (rpc::error_text), and then no more; empty: it ended well
  std::string error;
  std::vector<Tensor> outputs;
  std::vector<Position> positions;  // beside ClosureRun::takes
  std::uint64_t staleness = 0;      // the largest over the shards it pushed to
  bool updated = false;             // it pushed
  std::uint64_t copies = 0;         // StepStore::fingerprint_of_copies(), if it is asked for
};

}  // namespace cairn::worker
