#include "coordinator/cluster/loss_ledger.h"

#include <algorithm>
#include <utility>

#include "coordinator/cluster/shard_client.h"

namespace cairn {

LossLedger::Absence LossLedger::lost(std::string task, std::string reason, double at) {
  reports_.push_back({std::move(task), std::move(reason), at});
  return reports_.size() - 1;
}

// The absence does not end here: it lasts until an update has gone through the task again, since
// only that shows that it serves.
void LossLedger::back(Absence absence, double after) {
  if (absence) reports_[*absence].back_after_seconds = after;
}

bool LossLedger::first_push(Absence& absence, double at) {
  if (!absence) return false;
  LossReport& report = reports_[*absence];
  report.first_push_after_seconds = at - report.at_seconds;
  absence.reset();
  return true;
}

// A closure that was sent before a ps was rebuilt has pushed to the process that is gone, and the
// new one refuses such pushes. So the rebuilt ps does without it, unless the checkpoint that it was
// made from holds it.
bool LossLedger::commit(std::uint64_t sequence, std::uint64_t sent_layout) {
  ++state_.committed;
  bool lacks = false;
  for (Ps& ps : state_.ps) {
    // The usual case first: almost every closure was sent under the newest layout.
    if (sent_layout >= ps.rebuilt.layout_version) continue;
    if (ps.rebuilt.has && ps.rebuilt.has->contains(sequence)) continue;
    ++ps.missing;
    add(ps, 1);
    lacks = true;
  }
  return lacks;
}

std::uint64_t LossLedger::rebuilt(std::size_t index, Rebuilt how) {
  Ps& ps = state_.ps.at(index);
  // It lacks what was committed after the checkpoint's cut and what it lacked at that cut. Of those
  // the ones that it lacked before this loss were reported then: only the difference is news.
  const std::uint64_t lacked = how.from.missing.empty() ? 0 : how.from.missing.at(index);
  const std::uint64_t missing = state_.committed - how.from.covers + lacked;
  const std::uint64_t lost = missing - std::min(missing, ps.missing);
  ps.missing = missing;
  ps.rebuilt = std::move(how);
  add(ps, lost);
  return lost;
}

void LossLedger::adopt(std::uint64_t updates, const std::vector<std::uint64_t>& lacking) {
  state_.committed += updates;
  for (std::size_t i = 0; i < lacking.size(); ++i) {
    state_.ps.at(i).missing += lacking[i];
    state_.lost += lacking[i];
  }
}

void LossLedger::told(const std::string& task, std::string reason, double at,
                      std::uint64_t lost_updates) {
  LossReport& report = reports_.emplace_back(LossReport{task, std::move(reason), at});
  report.back_after_seconds = report.first_push_after_seconds = 0;
  report.lost_updates = lost_updates;
}

// The program has gone back to a state of its own choice, and what was lost since is not part of
// it. The reports stay, for they tell what happened.
void LossLedger::restored(std::uint64_t lost_updates) {
  state_.lost_before = lost_updates;
  state_.lost_undone = state_.lost;
  for (Ps& ps : state_.ps) ps.missing = 0;
}

LossLedger::Holdings LossLedger::holdings() const {
  Holdings now{state_.committed, {}};
  for (const Ps& ps : state_.ps) now.missing.push_back(ps.missing);
  return now;
}

void LossLedger::add(const Ps& ps, std::uint64_t updates) {
  state_.lost += updates;
  if (ps.rebuilt.absence) reports_[*ps.rebuilt.absence].lost_updates += updates;
}

}  // namespace cairn
