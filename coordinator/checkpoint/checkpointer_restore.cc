// Going back to a checkpoint: everything is compared first, then each ps reads its rows.

#include <algorithm>

#include "coordinator/checkpoint/checkpointer.h"
#include "coordinator/checkpoint/manifest_io.h"

namespace cairn {
namespace {
// A run that was resumed more often than this left the first of them long ago.
constexpr std::size_t kAncestorsMax = 256;
}  // namespace

rpc::Task<void> Checkpointer::restore(std::string checkpoint, RestoreOptions options) {
  while (busy_) co_await session_.changed.wait();
  busy_ = true;
  std::exception_ptr error;
  try {
    co_await restore_all(std::move(checkpoint), options);
  } catch (...) {
    error = std::current_exception();
  }
  busy_ = false;
  session_.changed.notify_all();
  if (error) std::rethrow_exception(error);
  pump_();
}

SavedVariables Checkpointer::restored_variables() const {
  return sources_.restored ? sources_.restored->variables : SavedVariables{};
}

void Checkpointer::expect_partial_restore() {
  if (sources_.restored) sources_.restored->partial = true;
}

rpc::Task<void> Checkpointer::restore_all(std::string checkpoint, RestoreOptions options) {
  Disk* disk = &session_.parts.disk;
  auto source = std::make_shared<CheckpointView>();
  std::function<void()> read = [disk, checkpoint, source] {
    *source = read_manifest(*disk, checkpoint);
  };
  co_await on_disk_thread(read);
  // Conditions are asked here and not where the wait is: a coroutine goes on a turn of the loop
  // after what it waited for has ended, and by then another may have taken the lock.
  const auto all_there = [this] { return !lock_.held() && members_.all_ps_ready(); };
  while (!all_there()) co_await change();
  // All fit, or nothing changes.
  verify_types(variables_of(*tables_.registry().layout()), source->variables, checkpoint);
  keep_wanted(source->positions, options);
  if (source->session != session_.number) progress_.verify(source->positions);
  go_on_from(source);
  // All are marked before the first is restored: from now on the run's state is that of the
  // checkpoint, and a ps that is lost in between must not come back with rows from before it.
  for (auto& ps : members_.ps) ps->needs_rows = true;
  // A ps that is lost on the way is restored when it is attached again.
  for (auto& ps : members_.ps) {
    while (ps->needs_rows && (lock_.held() || !ps->ready)) co_await change();
    if (!ps->needs_rows) continue;
    try {
      const TableLock::Hold hold(lock_);
      std::vector<std::shared_ptr<CheckpointView>> sources{source};
      co_await tables_.restore(ps.get(), tables_.synced(), 0, sources);
      ++members_.restores;
      for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->open();
      ps->needs_rows = false;
    } catch (const UnavailableError&) {
      // It still needs its rows, so that PsGroup rebuilds it when it is back. One that answered
      // this over a sound connection is cut off, as it would not be rebuilt otherwise.
      if (ps->control) ps->control->connection().close();
    }
  }
  // A ps may count as ready for some turns of the loop after its call has failed: only `needs_rows`
  // shows that it is restored.
  const auto all_restored = [&] {
    return all_there() && std::none_of(members_.ps.begin(), members_.ps.end(),
                                       [](const auto& ps) { return ps->needs_rows; });
  };
  while (!all_restored()) co_await change();
}

// Errors  Unavailable: a ps that is away was given up, so that nothing is left to wait for.
rpc::Task<void> Checkpointer::change() {
  for (const auto& ps : members_.ps)
    if (!ps->ready && ps->lost_for_good)
      throw UnavailableError(
          str("no checkpoint can be restored without ", ps->name, ": ", ps->trouble), ps->name);
  co_await session_.changed.wait();
}

// The run goes on where `source` was saved. Within the session that saved it, datasets stay where
// they are: what was taken of them meanwhile is not taken again.
void Checkpointer::go_on_from(std::shared_ptr<CheckpointView> source) {
  // Rows that no database holds are at the initial values of that seed.
  tables_.registry().set_seed(source->seed);
  losses_.restored(source->lost_updates);
  source->holdings = losses_.holdings();
  sources_.newest = sources_.restored = source;
  const bool ours = source->session == session_.number;
  if (!ours) become_heir_of(*source);
  progress_.restore(source->global_step,
                    ours ? std::vector<PipelinePosition>{} : source->positions);
  session_.stats.edit([&](EngineStats& stats) { stats.global_step = source->global_step; });
}

// Checkpoints from now on belong to the run that saved `source`, and to those it had gone on from.
void Checkpointer::become_heir_of(const CheckpointView& source) {
  ancestors_ = source.ancestors;
  ancestors_.push_back({source.session, source.checkpoint});
  if (ancestors_.size() > kAncestorsMax) ancestors_.erase(ancestors_.begin());
}

}  // namespace cairn
