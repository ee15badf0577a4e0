// Runs a scenario and judges it: what did the cluster promise, and what did it do?
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/simulation/scenario.h"

namespace cairn::simulation {

struct Verdict {
  std::vector<std::string> complaints;  // empty: every promise was kept
  // of every message and the final values: equal for equal scenarios
  std::uint64_t fingerprint = 0;
  std::uint64_t retried = 0, lost_updates = 0, checkpoints = 0, losses = 0;
  std::uint64_t staleness_max = 0;  // of all pushes that a shard applied
  std::uint64_t unmet = 0;          // faults that never met their phase
  double virtual_seconds = 0;
  bool good() const { return complaints.empty(); }
};

// The promises:
//   - each closure adds one to v, to w and to one row of each table, or of each table's part on
//     each shard: in a coordinator's life every part gets just that, less what the loss report says
//     of its ps (docs/architecture.md, recovery)
//   - every element of the data is committed with just one closure: no row is added to more often
//     than the elements ask for that were not committed when the life began, and the rows of a ps
//     together lack what is reported for it: exactly, where closures reach each shard
//   - what a fenced lane still sends for a closure that another has taken over is not
//     applied
//   - under bounded(k) no push that a shard applies is as stale as k * lanes
//   - under synchronous(b) each shard that applies a round sums the same members, and no closure is
//     a member of two that are applied
//   - under HybridStrategy the same, and no push is as stale as two rounds
//   - of workers in step, every value is at every checkpoint and at the end what all steps' shares
//     come to, each once; a group ends only because a worker was lost, whom every survivor names,
//     within a second if nothing else is wrong; a checkpoint is of a step that all have ended
//   - of the data service every element is handed out, none twice unless a data worker was killed
//     or a connection failed, and those that come again are counted
//   - of a ps or workers that come and go: flapping.h; of rows that do: turnover.h
//   - with a journal all coordinators' lives together are one such life, which is not set back;
//     where power was lost, elements may be committed with two closures, and each closure is a step
//     all the same
//   - with copies of each shard no update is lost, unless all copies of one are lost at once; then
//     no shard lacks more than is reported lost. Once nothing changes any more all copies are in
//     sync, and equal
//   - a subscriber's copy is equal to the rows on the ps once nothing changes any more, whatever
//     was lost, stopped or restored; at any time, where an answer says that it holds every change
//   - no error reaches the user; nothing waits for longer than two virtual minutes after the last
//     fault has ended
//   - every checkpoint that has a manifest is clean; those that are restored, the newest at the end
//     among them, are one cut (cut.h), also where a ps was lost before
Verdict run(const Scenario& scenario);

// The scenario with as few faults and closures as still make it fail, found by leaving out one
// after the other.
Scenario shrink(Scenario failing, const std::function<bool(const Scenario&)>& fails);

}  // namespace cairn::simulation
