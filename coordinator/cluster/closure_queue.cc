#include "coordinator/cluster/closure_queue.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "coordinator/cluster/fetch_ahead.h"
#include "core/base/log.h"

namespace cairn {
namespace {
// An error waits for so long for the closures that still run. Then it is raised all the same, since
// they may be stuck for the same reason.
constexpr Duration kDrainLimit = std::chrono::seconds(10);
// So many closures leave the queue before the one that is fetched into the caches.
constexpr std::size_t kAhead = 8;

std::string described(const std::exception_ptr& error) {
  const ErrorParts parts = error_parts(error);
  std::string place = parts.task.empty() ? "" : " of " + parts.task;
  return str(code_name(parts.code), place, ": ", parts.message);
}
}  // namespace

ClosureQueue::ClosureQueue(std::size_t capacity, std::shared_ptr<Waiting> waiting,
                           std::function<void()> wake)
    : capacity_(capacity == 0 ? std::numeric_limits<std::size_t>::max() : capacity),
      waiting_(std::move(waiting)),
      wake_(std::move(wake)) {}

void ClosureQueue::put(std::shared_ptr<Closure> closure) {
  bool was_empty;
  {
    std::unique_lock hold(board_->mutex);
    raise_if_failed(hold);
    // The error that came during a wait is raised too: a closure must not join a queue whose
    // generation has failed while its caller waited for room.
    while (queue_.size() >= capacity_) {
      waiting_->wait(hold, board_->changed, kForever,
                     [this] { return queue_.size() < capacity_ || error_; });
      raise_if_failed(hold);
    }
    closure->sequence = next_sequence_++;
    closure->generation = generation_;
    settled_.push_back(false);
    ++counts_.scheduled;
    was_empty = queue_.empty();
    done_asked_ = false;
    queue_.push_back(std::move(closure));
  }
  // Outside of the mutex, which the engine takes first of all. A queue that was not empty needs no
  // wake-up: the engine is on its way to it, or waits for an obstacle whose end has it look again.
  if (was_empty) wake_();
}

void ClosureQueue::resume(const std::vector<std::shared_ptr<Closure>>& open,
                          std::uint64_t next_sequence, const std::set<std::uint64_t>& running) {
  std::lock_guard hold(board_->mutex);
  next_sequence_ = resumed_below_ = next_sequence;
  watermark_ = open.empty() ? next_sequence : open.front()->sequence;
  settled_.assign(next_sequence - watermark_, true);
  for (const auto& closure : open) {
    settled_[closure->sequence - watermark_] = false;
    closure->generation = generation_;
    closure->returned = closure->must_finish = true;
    if (running.contains(closure->sequence))
      ++inflight_;
    else
      queue_.push_back(closure);
  }
  counts_.scheduled += open.size();
}

void ClosureQueue::join(Duration limit) {
  std::unique_lock hold(board_->mutex);
  struct Joining {
    std::size_t& joins;
    explicit Joining(std::size_t& all) : joins(all) { ++joins; }
    ~Joining() { --joins; }
  };
  std::optional<Joining> joining(std::in_place, joins_);
  if (board_->waiting_begins) {
    hold.unlock();
    board_->waiting_begins();
    hold.lock();
  }
  bool idle = waiting_->wait(hold, board_->changed, limit,
                             [this] { return (queue_.empty() && inflight_ == 0) || error_; });
  joining.reset();
  raise_if_failed(hold);
  if (!idle)
    throw DeadlineExceededError(str("join: ", queue_.size(), " closures are queued and ", inflight_,
                                    " running after the time allowed"));
}

bool ClosureQueue::done() {
  std::unique_lock hold(board_->mutex);
  raise_if_failed(hold);
  if (queue_.empty() && inflight_ == 0) return true;
  done_asked_ = true;
  hold.unlock();
  if (board_->waiting_begins) board_->waiting_begins();
  return false;
}

bool ClosureQueue::program_waits(const std::vector<const Closure*>& closures) const {
  std::lock_guard hold(board_->mutex);
  if (!queue_.empty()) return false;
  return error_ || joins_ > 0 || done_asked_ || watermark_ < resumed_below_ ||
         std::any_of(closures.begin(), closures.end(),
                     [](const Closure* closure) { return closure->awaited; });
}

// Those that came back stand near the front, before all that never left.
bool ClosureQueue::bring_forward(const std::function<bool(const Closure&)>& wanted) {
  std::lock_guard hold(board_->mutex);
  for (auto at = queue_.begin(); at != queue_.end() && (*at)->returned; ++at) {
    if (!wanted(**at)) continue;
    std::rotate(queue_.begin(), at, at + 1);
    return true;
  }
  return false;
}

void ClosureQueue::cancel() {
  std::lock_guard hold(board_->mutex);
  // A pending error stays the reason that cancelled closures are given.
  if (!error_) {
    cause_ = nullptr;
    cancellation_ = cancelled_by(nullptr);
  }
  cancel_queued();
}

QueueCounts ClosureQueue::counts() const {
  std::lock_guard hold(board_->mutex);
  QueueCounts now = counts_;
  now.queued = queue_.size();
  now.inflight = inflight_;
  return now;
}

// After an error the queue holds only closures that must be finished (cancel_queued), so they count
// as running.
bool ClosureQueue::running() const { return inflight_ > 0 || (error_ && !queue_.empty()); }

// Null: there is none. Several threads may wait here. The one that is first takes the error and
// begins the next generation; closures of the old one that still run end no later schedule or join.
std::exception_ptr ClosureQueue::take_error(std::unique_lock<std::mutex>& hold) {
  if (!error_) return nullptr;
  waiting_->wait(hold, board_->changed, kDrainLimit, [this] { return !running(); });
  if (!error_) return nullptr;
  ++generation_;
  hopeless_ = false;
  return std::exchange(error_, nullptr);
}

void ClosureQueue::raise_if_failed(std::unique_lock<std::mutex>& hold) {
  if (auto error = take_error(hold)) std::rethrow_exception(error);
}

void ClosureQueue::told(const std::exception_ptr& error) {
  std::unique_lock hold(board_->mutex);
  if (error_ == error) take_error(hold);
}

// After an error the queue holds nothing but closures that must finish.
std::shared_ptr<Closure> ClosureQueue::pop() {
  std::lock_guard hold(board_->mutex);
  if (queue_.empty()) return nullptr;
  auto closure = std::move(queue_.front());
  queue_.pop_front();
  if (queue_.size() > kAhead) fetch_ahead(*queue_[kAhead]);
  ++inflight_;
  // The queue was full before, so that a caller may wait for room.
  if (queue_.size() + 1 >= capacity_) board_->changed.notify_all();
  return closure;
}

std::shared_ptr<const Closure> ClosureQueue::front() const {
  std::lock_guard hold(board_->mutex);
  return queue_.empty() ? nullptr : queue_.front();
}

std::size_t ClosureQueue::size() const {
  std::lock_guard hold(board_->mutex);
  return queue_.size();
}

// A closure that some shards may have already is completed even after an error: cancelled, it would
// stay half applied, and the next cut would hold one half of it. Everything else of a failed
// generation is cancelled. What runs again goes back to its place in the order of sequence numbers,
// which is near the front, because it is older than what never left the queue.
void ClosureQueue::put_back(std::shared_ptr<Closure> closure) {
  {
    std::lock_guard hold(board_->mutex);
    --inflight_;
    closure->returned = true;
    closure->must_finish = closure->maybe_torn && !hopeless_;
    if (!closure->must_finish && (error_ || closure->generation != generation_)) {
      cancel_one(closure);
      board_->changed.notify_all();
    } else {
      ++counts_.retried;
      auto later = [&](const std::shared_ptr<Closure>& other) {
        return other->sequence > closure->sequence;
      };
      queue_.insert(std::find_if(queue_.begin(), queue_.end(), later), closure);
    }
  }
  wake_();
}

// Closures end in any order, and the watermark passes only an unbroken run of settled ones. Shards
// refuse as a duplicate whatever lies below it, so that one number too many would drop an update
// for good.
void ClosureQueue::settle(std::uint64_t sequence) {
  if (sequence < watermark_) return;
  settled_[sequence - watermark_] = true;
  while (!settled_.empty() && settled_.front()) {
    settled_.pop_front();
    ++watermark_;
  }
}

void ClosureQueue::finish(Closure& closure, std::vector<Tensor> outputs) {
  std::unique_lock hold(board_->mutex);
  closure.outputs = std::move(outputs);
  closure.outcome = Closure::Outcome::kReady;
  --inflight_;
  ++counts_.finished;
  settle(closure.sequence);
  // A join waits for the last closure only, and a fetch for its own: others wake no thread.
  const bool tell = closure.awaited || (inflight_ == 0 && queue_.empty());
  // A woken thread wants the mutex at once, perhaps on this core.
  hold.unlock();
  if (tell) board_->changed.notify_all();
}

void ClosureQueue::fail(Closure& closure, std::exception_ptr error) {
  std::lock_guard hold(board_->mutex);
  closure.error = error;
  closure.outcome = Closure::Outcome::kFailed;
  --inflight_;
  settle(closure.sequence);
  // The error of a closure of an earlier generation is its own: that generation's first error has
  // been raised, and the present one has not failed.
  if (closure.generation == generation_) {
    begin_failing(error);
    cancel_queued();
  }
  board_->changed.notify_all();
}

void ClosureQueue::fail_all(std::exception_ptr error) {
  std::lock_guard hold(board_->mutex);
  begin_failing(error);
  hopeless_ = true;
  // Without the cluster nothing that is half applied can be completed. To keep it queued would have
  // the program wait for ever.
  for (auto& closure : queue_) closure->must_finish = false;
  cancel_queued();
}

std::exception_ptr ClosureQueue::cancelled_by(const std::exception_ptr& cause) {
  const std::string why =
      cause ? str("after the first error, ", described(cause), "; mend that, then")
            : std::string("by the program;");
  return std::make_exception_ptr(
      CancelledError(str("the function was cancelled before it ran, ", why, " schedule it again")));
}

// All callers that wait are given the first error; the log has it even if none asks. The end of a
// dataset is not logged.
void ClosureQueue::begin_failing(std::exception_ptr error) {
  if (error_) return;
  error_ = cause_ = std::move(error);
  cancellation_ = cancelled_by(cause_);
  if (error_parts(error_).code != Code::kOutOfRange)
    log_error("the program is given an error: ", described(error_));
}

void ClosureQueue::cancel_one(const std::shared_ptr<Closure>& closure) {
  closure->error = cancellation_;
  closure->cause = cause_;
  closure->outcome = Closure::Outcome::kFailed;
  ++counts_.cancelled;
  settle(closure->sequence);
  // One that was sent before has taken elements of its datasets. The book of those belongs to the
  // engine's thread, which is woken to spend them.
  if (closure->returned) cancelled_.push_back(closure);
}

void ClosureQueue::cancel_queued() {
  std::deque<std::shared_ptr<Closure>> kept;
  for (auto& closure : queue_)
    if (closure->must_finish)
      kept.push_back(std::move(closure));
    else
      cancel_one(closure);
  queue_ = std::move(kept);
  board_->changed.notify_all();
  if (!cancelled_.empty()) wake_();
}

std::vector<std::shared_ptr<Closure>> ClosureQueue::take_cancelled() {
  std::lock_guard hold(board_->mutex);
  return std::exchange(cancelled_, {});
}

std::uint64_t ClosureQueue::low_watermark() const {
  std::lock_guard hold(board_->mutex);
  return watermark_;
}

}  // namespace cairn
