// Going back to a checkpoint: everything is compared first, then each ps reads its rows.

#include <algorithm>
#include <utility>

#include "coordinator/checkpoint/checkpointer.h"
#include "coordinator/checkpoint/manifest_io.h"
#include "core/base/log.h"
#include "rpc/loop/task_group.h"
#include "storage/checkpoint_folder.h"

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
    co_await restore_all(checkpoint, options);
  } catch (...) {
    error = std::current_exception();
  }
  std::function<void()> offer = [&] { error = offer_sound(error, checkpoint); };
  if (error) co_await on_disk_thread(offer);
  busy_ = false;
  session_.changed.notify_all();
  if (error) std::rethrow_exception(error);
  pump_();
}

// The same error, and where the checkpoint is damaged the newest older one that is sound.
std::exception_ptr Checkpointer::offer_sound(const std::exception_ptr& error,
                                             const std::string& checkpoint) const {
  const auto& rows = session_.parts.rows;
  return rows ? storage::with_sound_checkpoint(error, *rows, checkpoint) : error;
}

std::shared_ptr<const RestorePlan> Checkpointer::restored_plan() const {
  return sources_.restored ? sources_.restored->plan : std::make_shared<const RestorePlan>();
}

void Checkpointer::expect_partial_restore() {
  if (!sources_.restored) return;
  sources_.restored->partial = true;
  record_sources(false);
}

rpc::Task<void> Checkpointer::restore_all(std::string checkpoint, RestoreOptions options) {
  Disk* disk = &session_.parts.disk;
  auto source = std::make_shared<CheckpointView>();
  std::function<void()> read = [disk, checkpoint, source, options] {
    *source = read_manifest(*disk, checkpoint, options);
  };
  co_await on_disk_thread(read);
  const std::vector<ProgramVariable> made = variables_of(*tables_.registry().layout());
  if (source->plan->unusual(made)) log_info("restoring ", source->plan->text(made));
  source->plan->verify(made);
  // Before the wait, since nothing may come between it and what it is for.
  co_await tables_.verify_ids(source, made);
  // Conditions are asked here and not where the wait is: a coroutine goes on a turn of the loop
  // after what it waited for has ended, and by then another may have taken the lock.
  const auto all_there = [this] { return !lock_.held() && members_.all_ps_ready(); };
  while (!all_there()) co_await change();
  for (auto& ps : members_.ps) co_await verify_databases(ps.get(), source);
  while (!all_there()) co_await change();
  // All fit, or nothing changes.
  source->plan->verify(variables_of(*tables_.registry().layout()));
  keep_wanted(source->positions, options);
  if (source->session != session_.number) progress_.verify(source->positions);
  go_on_from(source);
  // All are marked before the first is restored: from now on the run's state is that of the
  // checkpoint, and a ps that is lost in between must not come back with rows from before it.
  for (auto& ps : members_.ps) ps->set_needs_rows(true);
  {
    const TableLock::Hold hold(lock_);
    // A successor must not take rows that shards have for those of the checkpoint.
    if (recorder_.on()) co_await recorder_.kept();
    std::vector<kj::Promise<void>> all;
    for (auto& ps : members_.ps) all.push_back(restore_ps(ps.get(), source).start());
    co_await rpc::all_ended(std::move(all));
  }
  // A ps may count as ready for some turns of the loop after its call has failed. Only `needs_rows`
  // shows whether it is restored.
  const auto all_restored = [&] {
    return all_there() && std::none_of(members_.ps.begin(), members_.ps.end(),
                                       [](const auto& ps) { return ps->needs_rows(); });
  };
  while (!all_restored()) co_await change();
  // Kept before a closure is sent: a successor that restored once more would take its update away.
  record_sources(false);
  if (recorder_.on()) co_await recorder_.kept();
}

// One that is lost meanwhile is asked again as it comes back.
rpc::Task<void> Checkpointer::verify_databases(Ps* ps, std::shared_ptr<CheckpointView> source) {
  try {
    std::vector<std::shared_ptr<CheckpointView>> sources{source};
    co_await tables_.verify_databases(ps, tables_.registry().layout(), 0, sources);
  } catch (const UnavailableError&) {
  }
}

rpc::Task<void> Checkpointer::restore_ps(Ps* ps, std::shared_ptr<CheckpointView> source) {
  try {
    std::vector<std::shared_ptr<CheckpointView>> sources{source};
    ps->coming.begin({});
    co_await tables_.restore(ps, tables_.synced(), 0, sources, ShardTables::Rest::kBeginsAnew);
    ++members_.restores;
    for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->open();
    ps->set_needs_rows(false);
    tables_.follow_restore(ps);
  } catch (const UnavailableError&) {
    // It still needs its rows, so that PsGroup rebuilds it when it is back. If it answered this
    // over a sound connection, it is cut off: otherwise it would never be rebuilt.
    members_.cut_off(*ps);
  }
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
  base_ = {};
  tables_.registry().set_seed(source->seed);
  losses_.restored(source->lost_updates);
  source->holdings = losses_.holdings();
  sources_.newest = sources_.restored = source;
  const bool ours = source->session == session_.number;
  if (!ours) become_heir_of(*source);
  progress_.restore(source->global_step,
                    ours ? std::vector<PipelinePosition>{} : source->positions);
  session_.stats.edit([&](EngineStats& stats) { stats.global_step = source->global_step; });
  record_sources(true);
  recorder_.standing(source->global_step, losses_, progress_);
}

rpc::Task<void> Checkpointer::resume(journal::SourcesAre sources) {
  Disk* disk = &session_.parts.disk;
  auto found = std::make_shared<RowSources>();
  std::function<void()> read = [disk, found, sources] {
    const auto view = [disk](const journal::SourcesAre::Source& source) {
      auto made =
          std::make_shared<CheckpointView>(read_manifest(*disk, source.folder, source.options));
      keep_wanted(made->positions, source.options);
      made->partial = source.partial;
      made->holdings = source.holdings;
      return made;
    };
    if (sources.restored) found->restored = view(*sources.restored);
    if (sources.newest) found->newest = view(*sources.newest);
  };
  co_await on_disk_thread(read);
  sources_.restored = found->restored;
  sources_.newest = found->newest;
  if (const auto& restored = sources_.restored; restored && restored->session != session_.number)
    become_heir_of(*restored);
  for (const auto& ps : members_.ps) ps->set_needs_rows(sources.restoring);
}

void Checkpointer::record_sources(bool restoring) {
  if (!recorder_.on()) return;
  const auto told = [](const std::shared_ptr<CheckpointView>& view) {
    std::optional<journal::SourcesAre::Source> source;
    if (view) source = {view->folder, view->options, view->partial, view->holdings};
    return source;
  };
  recorder_.sources({told(sources_.restored), told(sources_.newest), restoring});
}

// From now on checkpoints belong to the run that saved `source`, and to that run's ancestors.
void Checkpointer::become_heir_of(const CheckpointView& source) {
  ancestors_ = source.ancestors;
  ancestors_.push_back({source.session, source.checkpoint});
  if (ancestors_.size() > kAncestorsMax) ancestors_.erase(ancestors_.begin());
}

}  // namespace cairn
