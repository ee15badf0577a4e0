#include "coordinator/checkpoint/checkpointer.h"

#include <algorithm>
#include <utility>

#include "coordinator/checkpoint/chosen_encoding.h"
#include "coordinator/checkpoint/manifest_io.h"
#include "core/base/log.h"
#include "rpc/loop/on_offload.h"
#include "rpc/loop/task_group.h"
#include "storage/checkpoint_folder.h"
#include "storage/folder_lock.h"
#include "storage/manifest.h"

namespace cairn {
namespace {
// The pause before a save that a loss ended begins anew.
constexpr Duration kSaveAgain = std::chrono::milliseconds(50);
// So long a save waits for the folder's lock: the process that holds it may just have been killed.
constexpr Duration kLockPatience = std::chrono::seconds(2);

std::vector<const VariableSpec*> specs_of(const Layout& layout) {
  std::vector<const VariableSpec*> specs;
  for (const VariableLayout& variable : layout.variables) specs.push_back(variable.spec.get());
  return specs;
}
// Those that stay because of an error go after the next save.
void remove_older_or_warn(Disk& disk, const CheckpointPolicy& policy,
                          const CheckpointView& newest) {
  try {
    remove_older(disk, policy, newest);
  } catch (const Error& error) {
    log_warning("checkpoints older than ", newest.folder, " stay for now: ", error.what());
  }
}
}  // namespace

Checkpointer::Checkpointer(const CheckpointParts& parts, CutMaker cuts, std::function<void()> pump)
    : session_(parts.session),
      members_(parts.members),
      tables_(parts.tables),
      lock_(parts.lock),
      sources_(parts.sources),
      progress_(parts.progress),
      losses_(parts.losses),
      recorder_(parts.recorder),
      cuts_(cuts),
      pump_(std::move(pump)) {}

rpc::Task<std::string> Checkpointer::save(CheckpointPolicy policy, std::string metadata) {
  while (busy_) co_await session_.changed.wait();
  busy_ = true;
  std::exception_ptr error;
  std::string name;
  bool again = true;
  while (again) {
    try {
      error = nullptr;
      name = co_await save_one(policy, metadata);
      again = false;
    } catch (const UnavailableError&) {  // a ps was lost: the next cut waits for it
      error = std::current_exception();
      again = session_.options.recovery && !members_.any_ps_given_up();
    } catch (...) {
      error = std::current_exception();
      again = false;
    }
    // Cleared before the wait for the next attempt. A ps that is being rebuilt waits until nothing
    // is written (PsGroup::attach), and the next cut waits for that ps: kept set, each would wait
    // for the other.
    sources_.writing = false;
    session_.changed.notify_all();
    if (again) co_await session_.parts.reactor.sleep(kSaveAgain);
  }
  busy_ = false;
  session_.changed.notify_all();
  if (error) std::rethrow_exception(error);
  co_return name;
}

rpc::Task<std::string> Checkpointer::save_one(CheckpointPolicy policy, std::string metadata) {
  if (policy.folder.empty()) throw InvalidArgumentError("a checkpoint needs a folder");
  verify_encoding(policy.encoding);
  verify_chain(policy, session_.parts.disk);
  verify_local_folder(policy);
  const TimePoint began = session_.parts.clock.now();
  std::uint64_t id = 0;
  Disk* disk = &session_.parts.disk;
  auto lock = lock_of(policy.folder);
  const Clock* clock = &session_.parts.clock;
  // The folder is locked before the number is chosen, for two runs that save into one folder would
  // find the same number free. The lock is kept for the later saves.
  const Base base = may_be_delta(policy) ? base_ : Base{};
  bool base_is_there = false, local_rows = false;
  std::function<void()> choose = [disk, clock, &id, &lock, &base_is_there, &local_rows,
                                  folder = policy.folder, path = base.path] {
    if (!lock) lock = storage::lock_folder(*disk, folder, *clock, kLockPatience);
    id = next_checkpoint_id(*disk, folder);
    local_rows = has_local_rows(*disk, folder);
    base_is_there = !path.empty() && disk->exists(path + "/" + storage::kManifestFile);
  };
  co_await on_disk_thread(choose);
  if (policy.lasting) locks_[policy.folder] = lock;
  if (local_rows) co_await remove_local_rows(policy.folder);  // first: their room may be needed
  local_rows = local_rows || !policy.local_folder.empty();
  std::string name = checkpoint_path(policy.folder, id);
  co_await tables_.reach_newest();  // so that a model is saved whole even if no step has run
  const CutBase below{base_is_there ? base.mark : 0, policy.lasting && policy.full_every > 1,
                      !policy.lasting};
  auto cut = std::make_shared<Cut>(co_await cuts_.make(id, below));
  cut->encoding = choose_encoding(policy.encoding, specs_of(*cut->layout));
  std::exception_ptr error;
  try {
    cut->rows = rows_path(*disk, name, session_.number, cut->mark);
    if (!policy.local_folder.empty()) co_await choose_local_rows(cut, policy);
    co_await save_shards(cut);
    co_await commit(cut, name, policy, std::move(metadata));
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    // A coroutine cannot wait within a catch block, so the error is kept until the folder is swept.
    // No shard writes into it any more: save_shards() ends when every one has ended.
    std::function<void()> clear = [disk, name, cut, session = session_.number] {
      sweep(*disk, name, cut->rows, session);
    };
    co_await on_disk_thread(clear);
    if (local_rows) co_await remove_local_rows(policy.folder);
    std::rethrow_exception(error);
  }
  if (local_rows) co_await remove_local_rows(policy.folder);
  if (!policy.lasting) co_return name;
  const double seconds = session_.seconds_since(began);
  session_.stats.edit([&](EngineStats& stats) {
    ++stats.checkpoints;
    stats.last_checkpoint = name;
    stats.last_checkpoint_seconds = seconds;
  });
  consolidate_if_due(policy);
  co_return name;
}

// A restore, a checkpoint in another folder or one that holds rows otherwise begins a new row of
// them. One that is not to last has no part in it.
bool Checkpointer::may_be_delta(const CheckpointPolicy& policy) const {
  const bool due = policy.lasting && base_.mark != 0 && base_.deltas + 1 < policy.full_every &&
                   folder_of(base_.path) == policy.folder;
  if (due && base_.encoding != policy.encoding)
    log_info("the next checkpoint is a full one: ", base_.path, " holds its rows in another form");
  return due && base_.encoding == policy.encoding;
}

// Held until the engine goes; null: it is to be taken.
std::shared_ptr<const storage::FolderLock> Checkpointer::lock_of(const std::string& folder) const {
  const auto found = locks_.find(folder);
  return found == locks_.end() ? nullptr : found->second;
}

void Checkpointer::hold_folder(std::shared_ptr<const storage::FolderLock> lock) {
  locks_[lock->folder] = std::move(lock);
}

// Ends when every shard's save has ended: then no shard still writes into a folder that is swept.
rpc::Task<void> Checkpointer::save_shards(std::shared_ptr<Cut> cut) {
  for (const auto& ps : members_.ps) {  // one may have been lost since its shards marked
    if (ps->ready && ps->attached == cut->attached[ps->index]) continue;
    cuts_.drop(cut->mark);
    throw UnavailableError(str(ps->name, " was lost as a checkpoint began: ", ps->trouble),
                           ps->name);
  }
  cut->saved.resize(members_.all_shards().size());
  std::vector<kj::Promise<void>> saves;
  for (const auto& ps : members_.ps)
    for (const auto& shard : ps->shards) {
      const std::size_t i = cut->savers.size();
      cut->savers.emplace_back(ps->index, shard->shard());
      const std::string folder =
          cut->local_rows.empty() ? cut->rows : cut->local_rows[ps->index].path;
      saves.push_back(save_shard(cut, i, *shard, folder).start());
    }
  for (auto& save : saves) co_await kj::mv(save);
  if (cut->error) std::rethrow_exception(cut->error);
}

// The first that fails stops the others, and is the error: theirs is only that they were stopped.
rpc::Task<void> Checkpointer::save_shard(std::shared_ptr<Cut> cut, std::size_t i,
                                         ShardClient& shard, std::string folder) {
  try {
    cut->saved[i] = co_await shard.save(cut->mark, folder, cut->encoding);
  } catch (...) {
    if (cut->error) co_return;
    cut->error = std::current_exception();
    cuts_.drop(cut->mark);
  }
}

rpc::Task<void> Checkpointer::commit(std::shared_ptr<Cut> cut, std::string name,
                                     CheckpointPolicy policy, std::string metadata) {
  auto restored = std::make_shared<CheckpointView>();
  restored->folder = name;
  restored->checkpoint = cut->id;
  restored->session = session_.number;
  restored->ancestors = ancestors_;
  restored->global_step = cut->global_step;
  restored->lost_updates = cut->lost_updates;
  restored->applied = cut->applied;
  restored->positions = cut->positions;
  restored->seed = cut->layout->seed;
  SavedVariables saved;
  for (const VariableLayout& variable : cut->layout->variables) {
    const VariableSpec& spec = *variable.spec;
    const bool dropped = cut->encoding.form_of(spec.name).slots == storage::SlotForm::kDropped &&
                         !rule_slots(variable.rule).empty();
    saved[spec.name] = {{spec.dtype, spec.shape}, variable.rule, spec.hashed, dropped};
  }
  restored->plan = std::make_shared<const RestorePlan>(std::move(saved), name);
  auto wall = session_.parts.clock.wall_microseconds();
  Disk* disk = &session_.parts.disk;
  // Older checkpoints go only once the new one is whole, so that a save that fails costs none of
  // them, and once a journal names the new one, since a successor looks for the one that it names.
  const Base base = cut->delta ? base_ : Base{};
  const bool journal_knows = recorder_.on() && policy.lasting;
  std::function<void()> write = [=] {
    if (cut->local_rows.empty()) verify_shared(*disk, cut->rows, cut->saved);
    if (!base.path.empty()) restored->databases = link_databases(*disk, base.path, name);
    for (storage::DatabaseInfo& database : own_databases(name, *cut))
      restored->databases.push_back(std::move(database));
    write_manifest(*disk, name, *restored, *cut, policy, metadata, wall,
                   base.path.substr(base.path.rfind('/') + 1));
    if (!journal_knows) remove_older(*disk, policy, *restored);
  };
  co_await on_disk_thread(write);
  restored->holdings = cut->holdings;
  restored->on_demand = sources_.restored && sources_.restored->on_demand;
  // Only once the manifest is on the disk: a ps that is rebuilt meanwhile has to use the previous
  // checkpoint, which is whole. A checkpoint that will be removed is nothing to rebuild a ps from,
  // nor for a delta to go back to.
  if (!policy.lasting) co_return;
  sources_.newest = restored;
  base_ = {};
  if (policy.full_every > 1)
    base_ = {cut->mark, name, cut->delta ? base.deltas + 1 : 0, policy.encoding};
  record_sources(false);
  recorder_.cut();
  if (journal_knows) {
    co_await recorder_.kept();
    std::function<void()> remove = [=] { remove_older_or_warn(*disk, policy, *restored); };
    co_await on_disk_thread(remove);
  }
  log_info("checkpoint ", name, " at step ", cut->global_step,
           cut->delta ? str(", a delta of ", base.path.substr(base.path.rfind('/') + 1)) : "",
           encoding_text(policy.encoding, cut->encoding));
}

rpc::Task<void> Checkpointer::on_disk_thread(std::function<void()> work) {
  co_await rpc::on_offload(session_.parts.reactor, session_.parts.offload, 0, std::move(work));
}

}  // namespace cairn
