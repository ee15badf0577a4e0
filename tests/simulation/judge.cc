#include "tests/simulation/world.h"

#include <algorithm>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "coordinator/journal/journal.h"
#include "storage/checkpoint_folder.h"
#include "tests/simulation/replicated.h"

namespace cairn::simulation {

// False of shards for which another ps answers: whatever this one still applies goes with its rows.
bool World::answers(int ps, std::optional<Epoch> epoch) const {
  if (!scenario_.copies.any() || strikes_.layout == nullptr) return true;
  return std::ranges::any_of(strikes_.layout->shards, [&](const ShardLayout& shard) {
    return static_cast<int>(shard.primary.ps) == ps && (!epoch || *epoch == shard.epoch);
  });
}

void World::fenced(LaneIncarnation newest, std::span<const LaneIncarnation> alive) {
  seen_.watched += 1;
  seen_.fences.push_back({newest, {alive.begin(), alive.end()}, seen_.watched});
}

// Where in watched_ a shard first refused the incarnation.
std::optional<std::uint64_t> World::fence_of(LaneIncarnation incarnation) const {
  for (const Fence& fence : seen_.fences)
    if (incarnation <= fence.newest &&
        std::ranges::find(fence.alive, incarnation) == fence.alive.end())
      return fence.at;
  return std::nullopt;
}

// A lost worker is fenced on every shard before its closures run elsewhere: once another one pushes
// for a closure after the first shard's fence, nothing of the lost one is applied. What another
// pushed before that was an earlier attempt.
void World::pushed(const StepContext& step, bool applied, std::uint64_t staleness) {
  seen_.watched += 1;
  verdict_.staleness_max = std::max(verdict_.staleness_max, staleness);
  const auto lanes = static_cast<std::uint64_t>(scenario_.workers) * scenario_.lanes;
  // Under HybridStrategy a closure pulls while the round before its own is open, and the round
  // after its own pushes rows as soon as gradients are all-reduced: while rows that this closure
  // pushes wait for others, to come from a disk or to be copied aside. The sums of two rounds are
  // counted as the pushes of closures are.
  const Consistency& promised = scenario_.consistency;
  const std::uint64_t most =
      HybridConsistency::is(promised) ? 3 * lanes + 2 : promised.steps() * lanes;
  if (most > 0 && staleness >= most)
    complain(str("a push of closure ", step.closure, " was applied ", staleness,
                 " updates late, and less than ", most, " were promised of ", lanes, " lanes"));
  Pushed& last = seen_.last_pushed[step.closure];
  const std::optional<std::uint64_t> fence =
      applied && last.incarnation != step.incarnation ? fence_of(step.incarnation) : std::nullopt;
  if (fence && last.at > *fence)
    complain(str("closure ", step.closure, " was applied for lane incarnation ", step.incarnation,
                 ", which is fenced, after ", last.incarnation, " had begun on it"));
  last = {step.incarnation, seen_.watched};
}

// Every shard is to sum the same members, in the same order, of whom none is another round's as
// well, unless all of them are: then they run again, because a shard lost their shares.
void World::applied_round(const ps::RoundRequest& request, bool applied) {
  std::vector<std::uint64_t> members;
  for (const ps::RoundMember& member : request.members) members.push_back(member.closure);
  const auto [known, fresh] = seen_.rounds.try_emplace(request.round, members);
  seen_.summed.insert(members.begin(), members.end());
  if (known->second != members)
    complain(str("round ", request.round, " is applied with other members than on another shard"));
  if (!applied || !fresh) return;
  // A round that a ps has lost is run again by others.
  if (HybridConsistency::is(scenario_.consistency) && !lost_ever_.empty()) return;
  for (const auto& [round, others] : seen_.rounds)
    if (round != request.round && others != members &&
        std::find_first_of(members.begin(), members.end(), others.begin(), others.end()) !=
            members.end())
      complain(str("round ", request.round, " applies a closure of round ", round));
}

// With a journal: in all lives, as its books have it.
std::vector<std::uint64_t> World::lost_in_this_life() {
  if (scenario_.saves.journal) {
    const auto& options = cluster_.strategy().host().engine().options();
    std::vector<std::uint64_t> lost;
    for (const LossLedger::Ps& ps : options.session.journal->state().losses().state().ps)
      lost.push_back(ps.missing);
    return lost;
  }
  return losses_by_ps(program_->coordinator.stats(), scenario_.ps);
}

// A loss of power may lose a closure on any ps.
void World::note_losses() {
  if (scenario_.loses_power() || scenario_.copies.some_lost()) return;
  auto lost = lost_in_this_life();
  for (int i = 0; i < scenario_.ps; ++i)
    if (lost[static_cast<std::size_t>(i)] > 0 && !lost_ever_.contains(i))
      complain(str("ps ", i, " was never killed, and ", lost[static_cast<std::size_t>(i)],
                   " updates are reported lost there"));
}

std::map<int, std::int64_t> World::judge_restored(const std::string& checkpoint,
                                                  const storage::Manifest& manifest,
                                                  const Values& values) {
  const auto layout = cluster_.strategy().host().engine().registry().layout();
  CutVerdict verdict = judge_cut(scenario_, manifest, values, *layout, lost_ever_);
  for (const auto& complaint : verdict.complaints)
    complain(str(checkpoint, ", step ", manifest.global_step, ", is no cut: ", complaint));
  return std::move(verdict.lacks);
}

void World::judge_values() {
  const Values now = values_of(*program_, due_);
  // a ps answers before the loss report is written
  cluster_.run_for(std::chrono::milliseconds(100));
  note_losses();
  const auto layout = cluster_.strategy().host().engine().registry().layout();
  for (auto& complaint :
       judge_life(scenario_, base_, due_, scenario_.closures, now, *layout, lost_in_this_life()))
    complain(std::move(complaint));
  judge_follower(now);
  // A ps that was lost has set them back.
  if (lost_ever_.empty())
    for (std::string& complaint : late_.judge()) complain(std::move(complaint));
  const std::int64_t step = program_->coordinator.stats().global_step - late_.updates();
  if (scenario_.saves.journal && !scenario_.consistency.in_rounds() && step != scenario_.closures)
    complain(str("all ", scenario_.closures, " closures are done at step ", step));
  verdict_.fingerprint =
      random_key(random_key(static_cast<std::uint64_t>(now.v), static_cast<std::uint64_t>(now.w)),
                 static_cast<std::uint64_t>(total(now.rows)));
}

void World::judge_follower(const Values& values) {
  if (follower_ == nullptr) return;
  if (std::string wrong = follower_->judge(values); !wrong.empty()) complain(std::move(wrong));
}

void World::judge_copies() {
  if (!scenario_.copies.any() || !verdict_.good()) return;
  // The status is a while ago, and something may be on its way to the copies. So those that are in
  // sync have three seconds in which to become equal.
  constexpr int kMost = 600, kToBecomeEqual = 30;
  std::vector<std::string> differences;
  for (int waited = 0, in_sync_for = 0; waited < kMost && in_sync_for < kToBecomeEqual; ++waited) {
    cluster_.run_for(std::chrono::milliseconds(100));
    if (!in_sync(program_->coordinator.status_json(), scenario_)) continue;
    ++in_sync_for;
    differences = compare_copies(cluster_, scenario_);
    if (differences.empty()) return;
  }
  if (differences.empty())
    return complain(str("copies are not in sync a minute after the last fault: ",
                        program_->coordinator.status_json()));
  for (std::string& difference : differences) complain(std::move(difference));
}

void World::judge_checkpoints() {
  finish_stats();
  storage::CheckpointFolder folder(cluster_.disk(), kCheckpoints);
  auto store = storage::make_memory_row_store(cluster_.disk());
  for (const auto& entry : folder.list()) {
    auto report = storage::verify(cluster_.disk(), *store, entry.path);
    for (const auto& problem : report.problems) complain(str(entry.path, ": ", problem));
  }
  if (!folder.latest()) return;
  const auto lost = lost_in_this_life();  // a restore makes the ps whole
  // Waits for a save that is under way, which may remove the oldest.
  program_->coordinator.restore(folder.latest()->path);
  const auto latest = folder.latest();
  std::map<int, std::int64_t> lacks;  // of the newest
  for (const auto& entry : folder.list()) {
    program_->coordinator.restore(entry.path);
    lacks = judge_restored(entry.path, storage::read_manifest(cluster_.disk(), entry.path),
                           values_of(*program_, due_));
  }
  if (follower_ != nullptr) judge_follower(values_of(*program_, due_));  // the restored rows
  judge_copies();
  if (latest->path == base_checkpoint_) return;
  for (const auto& [ps, lacking] : lacks) {
    const auto before = base_lacks_.contains(ps) ? base_lacks_.at(ps) : 0;
    const auto since = static_cast<std::int64_t>(lost[static_cast<std::size_t>(ps)]);
    if (lacking < before || lacking > before + since)
      complain(str(latest->path, " is no cut: ps ", ps, " lacks ", lacking, " updates in it, ",
                   before, " since before the run was resumed, and ", since,
                   " are reported lost since"));
  }
}

void World::finish_stats() {
  if (!program_ || lives_.counted == lives_.begun) return;
  lives_.counted = lives_.begun;
  EngineStats stats = program_->coordinator.stats();
  verdict_.retried += program_->coordinator.counts().retried;
  verdict_.lost_updates =
      stats.lost_updates + (scenario_.saves.journal ? 0 : verdict_.lost_updates);
  verdict_.checkpoints += stats.checkpoints;
  verdict_.losses += stats.losses.size();
  const bool bad_disk =
      std::any_of(scenario_.faults.begin(), scenario_.faults.end(), [](const Fault& fault) {
        return fault.kind == Fault::Kind::kDiskFull || fault.kind == Fault::Kind::kDiskDown;
      });
  if (!bad_disk && stats.checkpoints_failed > 0)
    complain(str(stats.checkpoints_failed, " checkpoints failed, and no disk did"));
}

void World::finish_verdict() {
  finish_stats();
  const auto phased = std::ranges::count_if(
      scenario_.faults, [](const Fault& fault) { return fault.phase != Phase::kAny; });
  verdict_.unmet = static_cast<std::uint64_t>(phased - strikes_.met);
  verdict_.virtual_seconds = std::chrono::duration<double>(cluster_.reactor().now()).count();
  verdict_.fingerprint = random_key(verdict_.fingerprint, cluster_.network().fingerprint());
}

}  // namespace cairn::simulation
