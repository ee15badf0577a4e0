// Judges a checkpoint by the values that it restores to: the steps, the elements of the data and
// the losses in its manifest, and the values, must be of one moment.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/rows/layout.h"
#include "storage/manifest.h"
#include "tests/simulation/program.h"

namespace cairn::simulation {

// The ps that the shard is numbered under, as which its losses are reported wherever its rows are.
int ps_of(ShardId shard, const Layout& layout);

// The sums that the elements which the checkpoint counts as committed add to the tables.
Due committed_at(const storage::Manifest& manifest, const Scenario& scenario);

// How many that are: each is one closure's.
std::int64_t elements_committed(const storage::Manifest& manifest);

struct CutVerdict {
  std::vector<std::string> complaints;
  std::map<int, std::int64_t> lacks;  // updates by ps; only of those whose values tell it exactly
};

// Judges the values that were restored from a checkpoint, under a layout that has the same shards
// as when it was saved.
//   - as many elements of the data are committed as there are steps; in rounds, of which each has
//     one member at least, as many or more. Where power was lost, the number of steps counts,
//     except in rounds. An assignment to a late variable is a step as well
//   - of these, a ps lacks the same number in v, w, wide and, where each closure reaches each
//     shard, in the rows of every shard; nothing on a ps that was never lost (`may_lack`); no row
//     was added to more often than the committed elements ask for
//   - what all ps lack is what the manifest reports as lost: exactly, where the values tell it of
//     each ps
CutVerdict judge_cut(const Scenario& scenario, const storage::Manifest& manifest,
                     const Values& values, const Layout& layout, const std::set<int>& may_lack);

}  // namespace cairn::simulation
