#include "coordinator/engine/unrecorded.h"

#include <algorithm>
#include <set>
#include <utility>

#include "coordinator/journal/journal_state.h"
#include "core/base/error.h"

namespace cairn {
namespace {

// Nothing is pushed to a shard that has no rows.
std::set<ShardId> shards_with_rows(const Layout& layout) {
  std::set<ShardId> shards;
  for (const VariableLayout& variable : layout.variables)
    for (const Part& part : variable.parts) shards.insert(part.shard);
  return shards;
}

bool lacks(const AppliedOnShards& shards, std::uint64_t closure) {
  return std::ranges::any_of(shards, [closure](const std::optional<AppliedClosures>& one) {
    return one && !one->contains(closure);
  });
}

}  // namespace

std::vector<UnrecordedClosure> find_unrecorded(const AppliedClosures& known,
                                               const std::vector<AppliedOnShards>& by_ps) {
  AppliedClosures all;
  for (const AppliedOnShards& shards : by_ps)
    for (const auto& applied : shards)
      if (applied) all.merge(*applied);
  std::vector<UnrecordedClosure> found;
  for (const auto& [begin, end] : all.ranges)
    for (std::uint64_t closure = std::max(begin, known.low_watermark); closure < end; ++closure) {
      if (known.contains(closure)) continue;
      found.push_back({closure, {}});
      for (std::size_t ps = 0; ps < by_ps.size(); ++ps)
        if (lacks(by_ps[ps], closure)) found.back().lacking.push_back(ps);
    }
  return found;
}

rpc::Task<void> Unrecorded::ask(Ps* ps) {
  if (recorder_.handed_over()) co_return;
  const std::set<ShardId> with_rows = shards_with_rows(*tables_.registry().layout());
  AppliedOnShards answers(ps->shard_count);
  for (std::size_t s = 0; s < ps->shards.size(); ++s) {
    const ShardId shard = ps->shards[s]->shard();
    if (!with_rows.contains(shard)) continue;
    AppliedClosures applied = co_await ps->shards[s]->applied();
    verify(*ps, shard, applied);
    answers[s] = std::move(applied);
  }
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost"), ps->name);
  answers_.resize(members_.ps.size());
  answers_[ps->index] = std::move(answers);
}

// Numbers are kept before any shard hears of them, and so are those below which all have ended. A
// shard that knows more has heard of it from a coordinator of which this journal knows nothing.
void Unrecorded::verify(const Ps& ps, ShardId shard, const AppliedClosures& applied) const {
  const journal::JournalState& found = *recorder_.found();
  const std::uint64_t end = applied.ranges.empty() ? 0 : applied.ranges.back().second;
  if (end <= found.closures_below() && applied.low_watermark <= found.known().low_watermark) return;
  throw DataLossError(
      str("shard ", shard, " of ", ps.name, " has closures up to ",
          std::max(end, applied.low_watermark) - 1, ", and the journal knows of numbers up to ",
          found.closures_below() - 1, " and of the end of those up to ",
          found.known().low_watermark - 1,
          ": it is an older state of this run's journal. Move its folder away and begin from the "
          "newest checkpoint: `cairn ckpt list` shows which there are"),
      ps.name);
}

rpc::Task<std::vector<UnrecordedClosure>> Unrecorded::all_asked() {
  answers_.resize(members_.ps.size());
  const auto asked = [this](const auto& ps) { return !answers_[ps->index].empty(); };
  while (!std::ranges::all_of(members_.ps, asked)) {
    recorder_.verify_written();  // without a journal no ps is attached
    for (const auto& ps : members_.ps)
      if (!ps->ready && ps->lost_for_good)
        throw UnavailableError(
            str("the run cannot be gone on with without ", ps->name, ": ", ps->trouble), ps->name);
    co_await session_.changed.wait();
  }
  co_return find_unrecorded(recorder_.found()->known(), answers_);
}

}  // namespace cairn
