// Judges a coordinator's life by the values at its end: they must be those it began with, and each
// closure since, less the updates that are reported lost.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/cluster/engine_options.h"
#include "core/rows/layout.h"
#include "tests/simulation/program.h"

namespace cairn::simulation {

// The state that a life began with: the values that it restored, and the sums of the elements that
// their checkpoint counts as committed.
struct Base {
  Values values;
  Due due;
  std::int64_t step = 0;  // closures committed
};
Base fresh_base(const Scenario& scenario);

// Updates reported lost in this life, by ps.
std::vector<std::uint64_t> losses_by_ps(const EngineStats& stats, int ps);

// Complaints about the values `now`, when all closures up to step `until` have ended; `due`: what
// their elements add to the tables.
//   - v, w and each element of wide gained one per closure, less what is reported lost on the
//     element's ps
//   - no row gained more than the elements ask for that were not committed at the base; the rows of
//     a ps together lack at most what is reported lost there, and those of each shard lack just
//     that where each closure reaches each shard. Where all copies of a shard may be lost, what is
//     reported of all ps is a bound for each shard. Where power was lost, elements may count twice:
//     then only the sums are judged
std::vector<std::string> judge_life(const Scenario& scenario, const Base& base, const Due& due,
                                    std::int64_t until, const Values& now, const Layout& layout,
                                    const std::vector<std::uint64_t>& lost);

}  // namespace cairn::simulation
