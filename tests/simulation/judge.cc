#include "tests/simulation/world.h"

#include <algorithm>

#include "storage/checkpoint_folder.h"

namespace cairn::simulation {
namespace {

int ps_of(ShardId shard, const Layout& layout) {
  for (const ShardServer& server : layout.servers)
    if (shard >= server.first_shard && shard < server.first_shard + server.shards) return static_cast<int>(server.ps);
  return -1;
}

}  // namespace

void World::fenced(std::uint64_t newest, std::span<const std::uint64_t> alive) {
  watched_ += 1;
  for (std::uint64_t incarnation = 1; incarnation <= newest; ++incarnation)
    if (std::find(alive.begin(), alive.end(), incarnation) == alive.end()) fenced_.try_emplace(incarnation, watched_);
}

// A lost worker is fenced on every shard before its closures run elsewhere: once another one pushes for a closure after the
// first shard's fence, nothing of the lost one is applied. What another pushed before that was an earlier attempt.
void World::pushed(const StepContext& step, bool applied) {
  watched_ += 1;
  Pushed& last = last_pushed_[step.closure];
  const auto fence = fenced_.find(step.incarnation);
  if (applied && fence != fenced_.end() && last.incarnation != step.incarnation && last.at > fence->second)
    complain(str("closure ", step.closure, " was applied for worker incarnation ", step.incarnation, ", which is fenced, after ", last.incarnation, " had begun on it"));
  last = {step.incarnation, watched_};
}

std::vector<std::uint64_t> World::losses_by_ps() {
  std::vector<std::uint64_t> lost(static_cast<std::size_t>(scenario_.ps), 0);
  for (const LossReport& loss : program_->coordinator.stats().losses)
    for (int i = 0; i < scenario_.ps; ++i)
      if (loss.task == str("/job:ps/task:", i)) lost[static_cast<std::size_t>(i)] += loss.lost_updates;
  return lost;
}
void World::note_losses() {
  auto lost = losses_by_ps();
  for (int i = 0; i < scenario_.ps; ++i)
    if (lost[static_cast<std::size_t>(i)] > 0 && !lost_ever_.contains(i)) complain(str("ps ", i, " was never killed, and ", lost[static_cast<std::size_t>(i)], " updates are reported lost there"));
}

void World::judge_cut(const Values& values, std::int64_t step, const std::string& what) {
  if (values.v != step || values.w != step || values.sum() != step)
    complain(str(what, " is no cut: at step ", step, " v is ", values.v, ", w ", values.w, ", the rows' sum ", values.sum()));
  for (const std::int64_t one : values.wide)
    if (one != step) return complain(str(what, " is no cut: at step ", step, " wide has a ", one));
}

void World::judge_values() {
  const Values now = values_of(*program_);
  cluster_.run_for(std::chrono::milliseconds(100));  // a ps answers before the loss report is written
  note_losses();
  const auto lost = losses_by_ps();
  const auto layout = cluster_.strategy().host().engine().registry().layout();
  const std::int64_t added = scenario_.closures - done_before_;
  auto judge_one = [&](const char* name, const Part& part, std::int64_t before, std::int64_t value) {
    const int ps = ps_of(part.shard, *layout);
    const std::int64_t expected = before + added - static_cast<std::int64_t>(lost[static_cast<std::size_t>(ps)]);
    if (value != expected)
      complain(str(name, " on ps ", ps, " is ", value, ", not ", expected, " (", before, " restored, ", added, " closures since, ", lost[static_cast<std::size_t>(ps)], " reported lost)"));
  };
  judge_one("v", layout->find("v")->parts.front(), base_.v, now.v);
  judge_one("w", layout->find("w")->parts.front(), base_.w, now.w);
  if (scenario_.wide > 0)
    for (const Part& part : layout->find("wide")->parts)
      for (auto i = static_cast<std::size_t>(part.rows.begin); i < static_cast<std::size_t>(part.rows.end); ++i) judge_one("wide", part, base_.wide.at(i), now.wide.at(i));
  for (const Part& part : layout->find("rows")->parts) judge_rows(part, ps_of(part.shard, *layout), lost, now);
  verdict_.fingerprint = random_key(random_key(static_cast<std::uint64_t>(now.v), static_cast<std::uint64_t>(now.w)), static_cast<std::uint64_t>(now.sum()));
}

void World::judge_rows(const Part& part, int ps, const std::vector<std::uint64_t>& lost, const Values& now) {
  const auto lost_here = static_cast<std::int64_t>(lost[static_cast<std::size_t>(ps)]);
  std::int64_t missing = 0;
  for (std::int64_t row = part.rows.begin; row < part.rows.end; ++row) {
    const auto i = static_cast<std::size_t>(row);
    const std::int64_t whole = expected_[i];
    const std::int64_t short_by = whole - now.rows[i];
    if (short_by < 0 || (short_by > 0 && lost_ever_.count(ps) == 0)) complain(str("row ", row, " on ps ", ps, " is ", now.rows[i], ", not ", whole));
    missing += short_by;
  }
  std::int64_t missing_before = 0;
  if (done_before_ > 0)
    for (std::int64_t row = part.rows.begin; row < part.rows.end; ++row) missing_before += done_before_;  // an upper bound is enough here
  if (missing > lost_here + missing_before) complain(str("rows on ps ", ps, " lack ", missing, " updates, ", lost_here, " are reported lost"));
}

void World::judge_checkpoints() {
  finish_stats();
  storage::CheckpointFolder folder(cluster_.disk(), kCheckpoints);
  auto store = storage::make_memory_row_store(cluster_.disk());
  for (const auto& entry : folder.list()) {
    auto report = storage::verify(cluster_.disk(), *store, entry.path);
    for (const auto& problem : report.problems) complain(str(entry.path, ": ", problem));
  }
  auto latest = folder.latest();
  if (!latest || !lost_ever_.empty()) return;
  program_->coordinator.restore(latest->path);
  judge_cut(values_of(*program_), program_->coordinator.stats().global_step, latest->path);
}

void World::finish_stats() {
  if (!program_ || counted_life_ == lives_) return;
  counted_life_ = lives_;
  EngineStats stats = program_->coordinator.stats();
  verdict_.retried += program_->coordinator.counts().retried;
  verdict_.lost_updates += stats.lost_updates;
  verdict_.checkpoints += stats.checkpoints;
  verdict_.losses += stats.losses.size();
  const bool bad_disk = std::any_of(scenario_.faults.begin(), scenario_.faults.end(),
                                    [](const Fault& fault) { return fault.kind == Fault::Kind::kDiskFull || fault.kind == Fault::Kind::kDiskDown; });
  if (!bad_disk && stats.checkpoints_failed > 0) complain(str(stats.checkpoints_failed, " checkpoints failed, and no disk did"));
}

void World::finish_verdict() {
  finish_stats();
  verdict_.virtual_seconds = std::chrono::duration<double>(cluster_.reactor().now()).count();
  verdict_.fingerprint = random_key(verdict_.fingerprint, cluster_.network().fingerprint());
}

}  // namespace cairn::simulation
