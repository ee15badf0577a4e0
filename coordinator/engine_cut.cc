// The cut of a checkpoint: a moment at which every closure is done on all shards or on none.

#include "coordinator/checkpoint_view.h"
#include "coordinator/engine.h"
#include "core/base/log.h"

namespace cairn {
namespace {
constexpr Duration kHoldDeadline = std::chrono::seconds(30);
constexpr Duration kPause = std::chrono::milliseconds(50);  // between two attempts

// Of a cut that came to nothing: that somebody was lost, or is too slow to hold its pushes, is no
// fault of the program's.
void verify_is_a_loss(const std::exception_ptr& error) {
  const ErrorParts parts = error_parts(error);
  if (parts.code == Code::kDeadlineExceeded)
    return log_warning("a checkpoint waits: ", parts.message);
  if (parts.code != Code::kUnavailable) std::rethrow_exception(error);
}
}  // namespace

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

// Pushes are held while every shard marks. What a lost worker left half done is completed first, by
// its retry.
rpc::Task<Engine::Cut> Engine::make_cut(std::uint64_t checkpoint) {
  for (;;) {
    while (torn_ > 0 || !all_ps_ready() || layout_busy_) {
      for (auto& ps : ps_)
        if (ps->lost_for_good)
          throw UnavailableError(
              str("no checkpoint can be made without ", ps->name, ": ", ps->trouble), ps->name);
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
    // somebody was lost meanwhile: once that is mended, anew
    co_await parts_.reactor.sleep(kPause);
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
  if (torn_ > 0 || !all_ps_ready() || times_attached() != cut->attached ||
      !all_applied_committed(*cut))
    co_return false;
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
    std::string what = str("holding the pushes of ", lane->worker->name, " lane ", lane->index,
                           " for a checkpoint");
    holds.push_back(parts_.reactor.with_deadline(hold_lane(lane), kHoldDeadline, what));
  }
  for (auto& hold : holds) co_await kj::mv(hold);
}

// Ends when no push of the lane is under way, and what became of its closures is known here: one
// that failed between two shards is torn from then on only.
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
    if (lane->ready && lane->client)
      lane->tasks->spawn("release pushes", lane->client->release_pushes());
  }
  pump();
}

// At this moment no push is under way, and what the shards have applied is committed.
void Engine::take_positions(Cut& cut) {
  cut.holdings = losses_.holdings();
  cut.global_step = global_step_;
  cut.lost_updates = losses_.lost_on_the_way();
  for (const Pipeline& pipeline : pipeline_book_) cut.positions.push_back(pipeline.position());
}

}  // namespace cairn
