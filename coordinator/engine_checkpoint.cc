// Checkpoints: the cut while training goes on, the commit, and going back to one.

#include <algorithm>

#include "coordinator/checkpoint_view.h"
#include "coordinator/engine.h"
#include "coordinator/manifest_io.h"
#include "core/base/log.h"
#include "rpc/on_offload.h"
#include "storage/folder_lock.h"

namespace cairn {
namespace {
constexpr Duration kTimer = std::chrono::milliseconds(50);
// for a process that has just been killed
constexpr Duration kLockPatience = std::chrono::seconds(2);
// A run that was resumed more often than this left the first of them long ago.
constexpr std::size_t kAncestorsMax = 256;
}  // namespace

bool Engine::CheckpointView::holds(const VariableSpec& spec) const {
  auto found = variables.find(spec.name);
  if (found == variables.end()) return false;
  TensorType wanted{spec.dtype, spec.shape};
  const bool same = found->second.type == wanted;
  if (!same && partial) return false;
  if (!same)
    throw FailedPreconditionError(str(
        "variable \"", spec.name, "\" is ", wanted.to_string(), ", in checkpoint ", folder,
        " it is ", found->second.type.to_string(), ": restore it with the model that saved it"));
  return true;
}

rpc::Task<std::string> Engine::save(CheckpointPolicy policy, std::string metadata) {
  while (checkpoint_busy_) co_await changed_.wait();
  checkpoint_busy_ = true;
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
      again = options_.recovery && !any_ps_given_up();
    } catch (...) {
      error = std::current_exception();
      again = false;
    }
    writing_ = false;
    changed();
    if (again) co_await parts_.reactor.sleep(kTimer);
  }
  checkpoint_busy_ = false;
  changed();
  if (error) std::rethrow_exception(error);
  co_return name;
}

rpc::Task<std::string> Engine::save_one(CheckpointPolicy policy, std::string metadata) {
  if (policy.folder.empty()) throw InvalidArgumentError("a checkpoint needs a folder");
  const TimePoint began = parts_.clock.now();
  std::uint64_t id = 0;
  Disk* disk = &parts_.disk;
  auto lock = lock_of(policy.folder);
  const Clock* clock = &parts_.clock;
  std::function<void()> choose = [disk, clock, &id, &lock, folder = policy.folder] {
    if (!lock) lock = storage::lock_folder(*disk, folder, *clock, kLockPatience);
    id = next_checkpoint_id(*disk, folder);
  };
  co_await on_disk_thread(choose);
  locks_[policy.folder] = lock;
  std::string name = checkpoint_path(policy.folder, id);
  auto cut = std::make_shared<Cut>(co_await make_cut(id));
  std::exception_ptr error;
  try {
    co_await save_shards(cut, name);
    co_await commit_checkpoint(cut, name, policy, std::move(metadata));
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    std::function<void()> sweep = [disk, name] { disk->remove_tree(name); };
    co_await on_disk_thread(sweep);
    std::rethrow_exception(error);
  }
  std::lock_guard hold(shared_mutex_);
  ++stats_.checkpoints;
  stats_.last_checkpoint = name;
  stats_.last_checkpoint_seconds = seconds_since(began);
  co_return name;
}

// Held until the engine goes. The program's own, if it has one already; null: it is to be taken.
std::shared_ptr<const storage::FolderLock> Engine::lock_of(const std::string& folder) const {
  const auto found = locks_.find(folder);
  if (found != locks_.end()) return found->second;
  const auto& given = options_.folder_lock;
  return given && given->folder == folder ? given : nullptr;
}

void Engine::hold_folder(std::shared_ptr<const storage::FolderLock> lock) {
  locks_[lock->folder] = std::move(lock);
}

// What is saved from now on belongs to the run that saved `source`, with what it had gone on from.
void Engine::goes_on_from(const CheckpointView& source) {
  if (source.session == session_) return;
  ancestors_ = source.ancestors;
  ancestors_.push_back({source.session, source.checkpoint});
  if (ancestors_.size() > kAncestorsMax) ancestors_.erase(ancestors_.begin());
}

// Ends when every shard has: nobody still writes into a folder that is swept.
rpc::Task<void> Engine::save_shards(std::shared_ptr<Cut> cut, std::string folder) {
  for (const auto& ps : ps_) {  // one may have been lost since its shards marked
    if (ps->ready && ps->attached == cut->attached[ps->index]) continue;
    drop_marks(cut->mark);
    throw UnavailableError(str(ps->name, " was lost as a checkpoint began: ", ps->trouble),
                           ps->name);
  }
  const std::vector<ShardClient*> shards = all_shards();
  cut->saved.resize(shards.size());
  std::vector<kj::Promise<void>> saves;
  for (std::size_t i = 0; i < shards.size(); ++i)
    saves.push_back(save_shard(cut, i, *shards[i], folder).start());
  for (auto& save : saves) co_await kj::mv(save);
  if (cut->error) std::rethrow_exception(cut->error);
}

// The first that fails stops the others, and is the error: theirs is only that they were stopped.
rpc::Task<void> Engine::save_shard(std::shared_ptr<Cut> cut, std::size_t i, ShardClient& shard,
                                   std::string folder) {
  try {
    cut->saved[i] = co_await shard.save(cut->mark, folder);
  } catch (...) {
    if (cut->error) co_return;
    cut->error = std::current_exception();
    drop_marks(cut->mark);
  }
}

void Engine::drop_marks(std::uint64_t mark) {
  for (ShardClient* shard : all_shards()) {
    // a shard that is lost has none
    auto dropped = shard->drop_mark(mark).start().catch_([](kj::Exception&&) {});
    tasks_.spawn("drop a mark", kj::mv(dropped));
  }
}

rpc::Task<void> Engine::commit_checkpoint(std::shared_ptr<Cut> cut, std::string name,
                                          CheckpointPolicy policy, std::string metadata) {
  auto restored = std::make_shared<CheckpointView>();
  restored->folder = name;
  restored->checkpoint = cut->id;
  restored->session = session_;
  restored->ancestors = ancestors_;
  restored->global_step = cut->global_step;
  restored->lost_updates = cut->lost_updates;
  restored->applied = cut->applied;
  restored->positions = cut->positions;
  restored->seed = cut->layout->seed;
  for (const ShardSaved& shard : cut->saved) restored->databases.push_back(database_of(shard).name);
  for (const VariableLayout& variable : cut->layout->variables)
    restored->variables[variable.spec->name] = {{variable.spec->dtype, variable.spec->shape},
                                                variable.rule};
  auto wall = parts_.clock.wall_microseconds();
  Disk* disk = &parts_.disk;
  std::function<void()> write = [=] {
    write_manifest(*disk, name, *restored, *cut, metadata, wall);
    keep_last_checkpoints(*disk, policy.folder, policy.keep_last, *restored);
  };
  co_await on_disk_thread(write);
  restored->holdings = cut->holdings;
  newest_ = restored;
  log_info("checkpoint ", name, " at step ", cut->global_step);
}

rpc::Task<void> Engine::restore(std::string checkpoint, RestoreOptions options) {
  while (checkpoint_busy_) co_await changed_.wait();
  checkpoint_busy_ = true;
  std::exception_ptr error;
  try {
    co_await restore_all(std::move(checkpoint), options);
  } catch (...) {
    error = std::current_exception();
  }
  checkpoint_busy_ = false;
  changed();
  if (error) std::rethrow_exception(error);
  pump();
}

SavedVariables Engine::restored_variables() const {
  return restored_ ? restored_->variables : SavedVariables{};
}

void Engine::expect_partial_restore() {
  if (restored_) restored_->partial = true;
}

rpc::Task<void> Engine::restore_all(std::string checkpoint, RestoreOptions options) {
  Disk* disk = &parts_.disk;
  auto source = std::make_shared<CheckpointView>();
  std::function<void()> read = [disk, checkpoint, source] {
    *source = read_manifest(*disk, checkpoint);
  };
  co_await on_disk_thread(read);
  while (layout_busy_ || !all_ps_ready()) co_await changed_.wait();
  verify_types(variables_of(*registry_->layout()), source->variables,
               checkpoint);  // all fit, or nothing changes
  if (options.new_data) source->positions.clear();
  // rows that no database holds are at the initial values of that seed
  registry_->set_seed(source->seed);
  losses_.restored(source->lost_updates);
  source->holdings = losses_.holdings();
  newest_ = restored_ = source;
  goes_on_from(*source);
  global_step_ = next_step_ = saved_at_step_ = source->global_step;
  {
    std::lock_guard hold(shared_mutex_);
    stats_.global_step = global_step_;
  }
  restored_datasets_.clear();
  restore_positions();
  for (auto& ps : ps_) ps->needs_rows = true;
  // A ps that is lost on the way is restored when it is attached again.
  for (auto& ps : ps_) {
    while (ps->needs_rows && (layout_busy_ || !ps->ready)) co_await changed_.wait();
    if (!ps->needs_rows) continue;
    try {
      const Busy busy(*this);
      std::vector<std::shared_ptr<CheckpointView>> sources{source};
      co_await restore_shards(ps.get(), synced_, 0, sources);
      for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->open();
      ps->needs_rows = false;
    } catch (const UnavailableError&) {
    }
  }
  while (layout_busy_ || !all_ps_ready()) co_await changed_.wait();
}

// Gives each dataset made so far its positions; those made later ask again. A position belongs to
// the pipeline of its name, and means something only where the data is dealt out to as many
// pipelines as when it was saved.
void Engine::restore_positions() {
  if (!restored_ || restored_->session == session_) return;
  for (const auto& dataset : datasets_) {
    if (!restored_datasets_.insert(dataset->name()).second) continue;
    std::vector<PipelinePosition> mine;
    for (const auto& position : restored_->positions)
      if (position.name.substr(0, position.name.rfind('/')) == dataset->name())
        mine.push_back(position);
    if (mine.size() == dataset->pipelines())
      for (std::size_t i = 0; i < mine.size(); ++i)
        pipeline_book_[dataset->first_pipeline() + i] = Pipeline(std::move(mine[i]));
    else if (!mine.empty())
      log_warning("dataset ", dataset->name(), " begins anew: it was saved in ", mine.size(),
                  " pipelines and is now dealt out to ", dataset->pipelines());
  }
}

void Engine::save_by(CheckpointPolicy policy, std::string metadata) {
  bool timed = policy.every_seconds > 0;
  policy_ = std::move(policy);
  policy_metadata_ = std::move(metadata);
  saved_at_step_ = global_step_;
  saved_at_ = parts_.clock.now();
  if (timed) tasks_.spawn("timed checkpoints", timed_saves());
}

kj::Promise<std::string> Engine::save_by_policy() {
  if (!policy_)
    throw FailedPreconditionError(
        "the program saves no checkpoints by itself: there is no folder to save to");
  auto answer = kj::newPromiseAndFulfiller<std::string>();
  askers_.push_back(kj::mv(answer.fulfiller));
  if (askers_.size() == 1) tasks_.spawn("a checkpoint that was asked for", save_for_askers());
  return kj::mv(answer.promise);
}

// A task of the engine's, not of a peer's call: half a save is not to be given up with a
// connection.
rpc::Task<void> Engine::save_for_askers() {
  while (checkpoint_busy_) co_await changed_.wait();
  auto askers = std::exchange(askers_, {});
  std::string name;
  std::exception_ptr error;
  try {
    name = co_await save(*policy_, policy_metadata_);
  } catch (...) {
    error = std::current_exception();
  }
  for (auto& asker : askers) {
    if (error)
      asker->reject(rpc::to_kj(error));
    else
      asker->fulfill(std::string(name));
  }
}

void Engine::request_stop() {
  if (!looks_for_stop_)
    throw FailedPreconditionError(
        "this program does not look whether it is to stop (ClusterCoordinator::stop_requested): "
        "end its process");
  if (!stop_requested_.exchange(true)) log_info("the program is asked to stop");
}

void Engine::save_if_due() {
  if (!policy_ || policy_->every_steps <= 0 || checkpoint_busy_) return;
  if (global_step_ - saved_at_step_ < policy_->every_steps) return;
  saved_at_step_ = global_step_ / policy_->every_steps * policy_->every_steps;
  tasks_.spawn("a checkpoint", save_and_forget());
}

rpc::Task<void> Engine::save_and_forget() {
  saved_at_ = parts_.clock.now();
  try {
    co_await save(*policy_, policy_metadata_);
  } catch (const Error& e) {
    // training is worth more than one checkpoint; the next may work
    log_error("a checkpoint failed: ", e.what());
    std::lock_guard hold(shared_mutex_);
    ++stats_.checkpoints_failed;
    stats_.checkpoint_error = e.what();
  }
  saved_at_ = parts_.clock.now();
}

rpc::Task<void> Engine::timed_saves() {
  for (;;) {
    const auto pause =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(policy_->every_seconds));
    // one that was saved for its steps meanwhile puts it off
    const TimePoint due = saved_at_ + pause;
    const TimePoint now = parts_.clock.now();
    if (now < due || checkpoint_busy_) {
      co_await parts_.reactor.sleep(now < due ? due - now : kTimer);
      continue;
    }
    co_await save_and_forget();
  }
}

rpc::Task<void> Engine::on_disk_thread(std::function<void()> work) {
  co_await rpc::on_offload(parts_.reactor, parts_.offload, 0, std::move(work));
}

}  // namespace cairn
