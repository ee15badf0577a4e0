// Checkpoints: the cut while training goes on, the commit, and going back to one.

#include <algorithm>

#include "coordinator/engine.h"
#include "coordinator/engine_restored.h"
#include "coordinator/manifest_io.h"
#include "core/log.h"
#include "storage/folder_lock.h"

namespace cairn {
namespace {
constexpr Duration kHoldDeadline = std::chrono::seconds(30);
constexpr Duration kTimer = std::chrono::milliseconds(50);
constexpr Duration kLockPatience = std::chrono::seconds(2);  // for a process that has just been killed
constexpr std::size_t kAncestorsMax = 256;  // whoever was resumed more often has left the first of them long ago

// Of a cut that came to nothing: that somebody was lost, or is too slow to hold its pushes, is no fault of the program's.
void verify_is_a_loss(const std::exception_ptr& error) {
  const ErrorParts parts = error_parts(error);
  if (parts.code == Code::kDeadlineExceeded) return log_warning("a checkpoint waits: ", parts.message);
  if (parts.code != Code::kUnavailable) std::rethrow_exception(error);
}
}  // namespace

bool Engine::Restored::holds(const VariableSpec& spec) const {
  auto found = variables.find(spec.name);
  if (found == variables.end()) return false;
  TensorType wanted{spec.dtype, spec.shape};
  const bool same = found->second.type == wanted;
  if (!same && partial) return false;
  if (!same)
    throw FailedPreconditionError(str("variable \"", spec.name, "\" is ", wanted.to_string(), ", in checkpoint ", folder, " it is ",
                                      found->second.type.to_string(), ": restore it with the model that saved it"));
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

void Engine::hold_folder(std::shared_ptr<const storage::FolderLock> lock) { locks_[lock->folder] = std::move(lock); }

// What is saved from now on belongs to the run that saved `source`, with what it had gone on from.
void Engine::goes_on_from(const Restored& source) {
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
    throw UnavailableError(str(ps->name, " was lost as a checkpoint began: ", ps->trouble), ps->name);
  }
  const std::vector<ShardClient*> shards = all_shards();
  cut->saved.resize(shards.size());
  std::vector<kj::Promise<void>> saves;
  for (std::size_t i = 0; i < shards.size(); ++i) saves.push_back(save_shard(cut, i, *shards[i], folder).start());
  for (auto& save : saves) co_await kj::mv(save);
  if (cut->error) std::rethrow_exception(cut->error);
}

// The first that fails stops the others, and is the error: theirs is only that they were stopped.
rpc::Task<void> Engine::save_shard(std::shared_ptr<Cut> cut, std::size_t i, ShardClient& shard, std::string folder) {
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
    auto dropped = shard->drop_mark(mark).start().catch_([](kj::Exception&&) {});  // a shard that is lost has none
    tasks_.spawn("drop a mark", kj::mv(dropped));
  }
}

std::vector<std::uint64_t> Engine::times_attached() const {
  std::vector<std::uint64_t> all;
  for (const auto& ps : ps_) all.push_back(ps->attached);
  return all;
}

std::vector<ShardClient*> Engine::all_shards() const {
  std::vector<ShardClient*> all;
  for (const auto& ps : ps_)
    for (const auto& shard : ps->shards) all.push_back(shard.get());
  return all;
}

// Pushes are held while every shard marks. What a lost worker left half done is completed first, by its retry.
rpc::Task<Engine::Cut> Engine::make_cut(std::uint64_t checkpoint) {
  for (;;) {
    while (torn_ > 0 || !all_ps_ready() || layout_busy_) {
      for (auto& ps : ps_)
        if (ps->lost_for_good) throw UnavailableError(str("no checkpoint can be made without ", ps->name, ": ", ps->trouble), ps->name);
      co_await changed_.wait();
    }
    const TimePoint held = parts_.clock.now();
    Cut cut;
    cut.id = checkpoint;
    cut.mark = next_mark_++;  // a shard that marked for an attempt that came to nothing marks anew
    std::exception_ptr error;
    bool made = false;
    try {
      co_await hold_lanes();
      made = co_await mark_shards(&cut);
    } catch (...) {
      error = std::current_exception();
    }
    release_lanes();
    if (made) {
      std::lock_guard hold(shared_mutex_);
      stats_.last_cut_seconds = seconds_since(held);
      co_return cut;
    }
    writing_ = false;
    changed();
    drop_marks(cut.mark);
    if (error) verify_is_a_loss(error);
    co_await parts_.reactor.sleep(kTimer);  // somebody was lost meanwhile: once that is mended, anew
  }
}

// False: somebody was lost, or failed half way, meanwhile.
rpc::Task<bool> Engine::mark_shards(Cut* cut) {
  if (torn_ > 0 || !all_ps_ready() || layout_busy_) co_return false;
  writing_ = true;
  cut->layout = synced_;
  cut->attached = times_attached();
  std::vector<kj::Promise<ShardMark>> marks;
  for (ShardClient* shard : all_shards()) marks.push_back(shard->mark(cut->mark).start());
  for (auto& promise : marks) {
    ShardMark mark = co_await kj::mv(promise);
    cut->applied.merge(mark.applied);
  }
  // A process that was attached again meanwhile has no mark.
  if (torn_ > 0 || !all_ps_ready() || times_attached() != cut->attached || !all_applied_committed(*cut)) co_return false;
  take_positions(*cut);
  co_return true;
}

// A closure that some shard has applied, and whose end is not known here, may be half done.
bool Engine::all_applied_committed(const Cut& cut) const {
  for (const Lane* lane : lanes_)
    for (const auto& [sequence, closure] : lane->inflight)
      if (closure->function->updates && cut.applied.contains(sequence)) return false;
  return true;
}

// Every lane that may push: one that comes later is kept out until release_lanes().
rpc::Task<void> Engine::hold_lanes() {
  holding_ = true;
  std::vector<kj::Promise<void>> holds;
  for (Lane* lane : lanes_) {
    if (!lane->ready) continue;
    std::string what = str("holding the pushes of ", lane->worker->name, " lane ", lane->index, " for a checkpoint");
    holds.push_back(parts_.reactor.with_deadline(hold_lane(lane), kHoldDeadline, what));
  }
  for (auto& hold : holds) co_await kj::mv(hold);
}

// Ends when no push of the lane is under way, and what became of its closures is known here: one that failed between two
// shards is torn from then on only.
rpc::Task<void> Engine::hold_lane(Lane* lane) {
  const std::uint64_t incarnation = lane->incarnation;
  const std::uint64_t ended = co_await lane->client->hold_pushes();
  while (lane->incarnation == incarnation && lane->answers < ended) co_await changed_.wait();
}

void Engine::release_lanes() {
  holding_ = false;
  for (Lane* lane : lanes_) {
    lane->kept_out = false;
    weigh(*lane);
    if (lane->ready && lane->client) lane->tasks->spawn("release pushes", lane->client->release_pushes());
  }
  pump();
}

// At this moment no push is under way, and what the shards have applied is committed.
void Engine::take_positions(Cut& cut) {
  cut.covers = committed_;
  for (const auto& ps : ps_) cut.missing.push_back(ps->missing);
  cut.global_step = global_step_;
  cut.lost_updates = lost_before_ + stats_.lost_updates - lost_undone_;
  for (const Pipeline& pipeline : pipeline_book_) cut.positions.push_back(pipeline.position());
}

rpc::Task<void> Engine::commit_checkpoint(std::shared_ptr<Cut> cut, std::string name, CheckpointPolicy policy, std::string metadata) {
  auto restored = std::make_shared<Restored>();
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
    restored->variables[variable.spec->name] = {{variable.spec->dtype, variable.spec->shape}, variable.rule};
  auto wall = parts_.clock.wall_microseconds();
  Disk* disk = &parts_.disk;
  std::function<void()> write = [=] {
    write_manifest(*disk, name, *restored, *cut, metadata, wall);
    keep_last_checkpoints(*disk, policy.folder, policy.keep_last, *restored);
  };
  co_await on_disk_thread(write);
  restored->covers = cut->covers;
  restored->missing = cut->missing;
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
  auto source = std::make_shared<Restored>();
  std::function<void()> read = [disk, checkpoint, source] { *source = read_manifest(*disk, checkpoint); };
  co_await on_disk_thread(read);
  while (layout_busy_ || !all_ps_ready()) co_await changed_.wait();
  verify_types(variables_of(*registry_->layout()), source->variables,
               checkpoint);  // all fit, or nothing changes
  if (options.new_data) source->positions.clear();
  registry_->set_seed(source->seed);  // rows that no database holds are at the initial values of that seed
  source->covers = committed_;
  source->missing.assign(ps_.size(), 0);
  lost_before_ = source->lost_updates;
  lost_undone_ = stats_.lost_updates;
  newest_ = restored_ = source;
  goes_on_from(*source);
  global_step_ = next_step_ = saved_at_step_ = source->global_step;
  {
    std::lock_guard hold(shared_mutex_);
    stats_.global_step = global_step_;
  }
  restored_datasets_.clear();
  restore_positions();
  for (auto& ps : ps_) {
    ps->needs_rows = true;
    ps->missing = 0;
  }
  // A ps that is lost on the way is restored when it is attached again.
  for (auto& ps : ps_) {
    while (ps->needs_rows && (layout_busy_ || !ps->ready)) co_await changed_.wait();
    if (!ps->needs_rows) continue;
    try {
      const Busy busy(*this);
      std::vector<std::shared_ptr<Restored>> sources{source};
      co_await restore_shards(ps.get(), synced_, 0, sources);
      for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->open();
      ps->needs_rows = false;
    } catch (const UnavailableError&) {
    }
  }
  while (layout_busy_ || !all_ps_ready()) co_await changed_.wait();
}

// Gives each dataset made so far its positions; those made later ask again. A position belongs to the pipeline of its name, and
// means something only where the data is dealt out to as many pipelines as when it was saved.
void Engine::restore_positions() {
  if (!restored_ || restored_->session == session_) return;
  for (const auto& dataset : datasets_) {
    if (!restored_datasets_.insert(dataset->name()).second) continue;
    std::vector<PipelinePosition> mine;
    for (const auto& position : restored_->positions)
      if (position.name.substr(0, position.name.rfind('/')) == dataset->name()) mine.push_back(position);
    if (mine.size() == dataset->pipelines())
      for (std::size_t i = 0; i < mine.size(); ++i) pipeline_book_[dataset->first_pipeline() + i] = Pipeline(std::move(mine[i]));
    else if (!mine.empty())
      log_warning("dataset ", dataset->name(), " begins anew: it was saved in ", mine.size(), " pipelines and is now dealt out to ", dataset->pipelines());
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

rpc::Task<std::string> Engine::save_by_policy() {
  if (!policy_) throw FailedPreconditionError("the program saves no checkpoints by itself: there is no folder to save to");
  return save(*policy_, policy_metadata_);
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
    log_error("a checkpoint failed: ", e.what());  // training is worth more than one checkpoint; the next may work
    std::lock_guard hold(shared_mutex_);
    ++stats_.checkpoints_failed;
    stats_.checkpoint_error = e.what();
  }
  saved_at_ = parts_.clock.now();
}

rpc::Task<void> Engine::timed_saves() {
  for (;;) {
    const auto pause = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(policy_->every_seconds));
    const TimePoint due = saved_at_ + pause;  // one that was saved for its steps meanwhile puts it off
    const TimePoint now = parts_.clock.now();
    if (now < due || checkpoint_busy_) {
      co_await parts_.reactor.sleep(now < due ? due - now : kTimer);
      continue;
    }
    co_await save_and_forget();
  }
}

rpc::Task<void> Engine::on_disk_thread(std::function<void()> work) {
  struct Outcome {
    std::exception_ptr error;
    kj::Own<kj::PromiseFulfiller<void>> done;
  };
  auto outcome = std::make_shared<Outcome>();
  auto paf = kj::newPromiseAndFulfiller<void>();
  outcome->done = kj::mv(paf.fulfiller);
  auto mailbox = mailbox_;
  parts_.offload.submit(0, [outcome, mailbox, work = std::move(work)] {
    try {
      work();
    } catch (...) {
      outcome->error = std::current_exception();
    }
    mailbox->post([outcome] { outcome->done->fulfill(); });
  });
  co_await kj::mv(paf.promise);
  if (outcome->error) std::rethrow_exception(outcome->error);
}

}  // namespace cairn
