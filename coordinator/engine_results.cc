// What becomes of a closure that was sent: its results, its errors, and another run.
#include <algorithm>

#include "coordinator/checkpoint_view.h"
#include "coordinator/engine.h"
#include "coordinator/reply_wire.h"
#include "core/base/log.h"

namespace cairn {
namespace {
// A closure that is aborted again and again is our bug or the user's, not a recovery.
constexpr std::uint32_t kAttemptsMax = 1000;
constexpr Duration kRetryPause = std::chrono::milliseconds(20);
}  // namespace

rpc::Task<void> Engine::run_on(Lane* lane, LaneMessage message) {
  std::vector<LaneReply> replies;
  std::vector<std::uint64_t> sent;
  for (const auto& closure : message.closures) sent.push_back(closure->sequence);
  std::exception_ptr error;
  ++lane->calls;
  try {
    replies = co_await lane->client->run(std::move(message));
  } catch (...) {
    error = std::current_exception();
  }
  --lane->calls;
  const std::size_t answers = replies.size();
  if (error) {  // none of these has begun
    if (sent.empty()) lane->client->connection().close();
    for (const std::uint64_t sequence : sent)
      replies.push_back({.sequence = sequence, .error = error});
  }
  for (LaneReply& reply : replies) answered(*lane, std::move(reply));
  lane->answers += answers;
  if (holding_) changed();
  weigh(*lane);
  owe(*lane);
  pump();
}

void Engine::answered(Lane& lane, LaneReply reply) {
  const std::shared_ptr<Closure> closure = lane.inflight.find(reply.sequence);
  if (!closure) {
    log_error(lane.worker->name, " answers closure ", reply.sequence,
              ", which it does not have; its connection is ended");
    return lane.client->connection().close();
  }
  lane.window.answered(parts_.clock.now());
  try {
    if (reply.error) std::rethrow_exception(reply.error);
    verify_reply(reply, closure->function->concrete->graph, closure->takes.size());
    succeeded(lane, closure, std::move(reply));
  } catch (...) {
    went_wrong(lane, closure, std::current_exception());
  }
}

void Engine::succeeded(Lane& lane, const std::shared_ptr<Closure>& closure, LaneReply reply) {
  lane.inflight.remove(closure->sequence);
  for (std::size_t i = 0; i < closure->takes.size(); ++i) {
    const TakeRecord& take = closure->takes[i];
    bool known = i < reply.states.size();
    if (known && reply.states[i].skipped > skipped_rows_[take.pipeline])
      count_skipped(take.pipeline, reply.states[i].skipped);
    pipeline_book_[take.pipeline].commit(
        take, known ? reply.states[i].ordinal : 0,
        known ? std::move(reply.states[i].bytes) : std::vector<std::byte>{});
  }
  not_torn(*closure);
  if (closure->function->updates) count_update(lane, *closure, reply);
  queue_->finish(*closure, std::move(reply.outputs));
}

void Engine::count_skipped(std::uint64_t pipeline, std::uint64_t skipped) {
  std::lock_guard hold(shared_mutex_);
  stats_.skipped_rows += skipped - skipped_rows_[pipeline];
  skipped_rows_[pipeline] = skipped;
}

void Engine::count_update(Lane& lane, const Closure& closure, const LaneReply& reply) {
  global_step_ += closure.function->steps;
  bool news = losses_.commit(closure.sequence, closure.sent_version);
  if (lane.worker->ready && lane.worker->absence)
    news |= losses_.first_push(lane.worker->absence, uptime());
  for (auto& ps : ps_)
    if (ps->ready && ps->absence) news |= losses_.first_push(ps->absence, uptime());
  if (news) publish_losses();
  {
    std::lock_guard hold(shared_mutex_);
    ++stats_.updates;
    stats_.global_step = global_step_;
    stats_.staleness.add(reply.staleness);
    stats_.staleness_max = stats_.staleness.max();
    stats_.staleness_mean = stats_.staleness.mean();
  }
  save_if_due();
}

void Engine::went_wrong(Lane& lane, const std::shared_ptr<Closure>& closure,
                        std::exception_ptr error) {
  ErrorParts parts = error_parts(error);
  // worker_loop puts back what was in flight
  if (!lane.ready || !lane.client || !lane.client->connection().connected()) return;
  if (parts.input_pipeline) {  // whatever its code: the data's fault, not the worker's
    lane.inflight.remove(closure->sequence);
    return fail(*closure, input_error(parts, lane));
  }
  switch (parts.code) {
    case Code::kCancelled:  // the lane is fenced: it comes back under another incarnation
      lane.client->connection().close();
      return;
    case Code::kUnavailable:
    case Code::kAborted:
      lane.inflight.remove(closure->sequence);
      if (closure->attempts < kAttemptsMax) {
        // a ps went away in the middle: it may have this closure's push, or another may
        torn(*closure);
        if (parts.code == Code::kUnavailable)
          tasks_.spawn("run a closure again", run_again_later(closure));
        else
          queue_->put_back(closure);
        return;
      }
      [[fallthrough]];
    default: lane.inflight.remove(closure->sequence); fail(*closure, error);
  }
}

void Engine::fail(Closure& closure, std::exception_ptr error) {
  spend_elements(closure);
  not_torn(closure);
  queue_->fail(closure, error);
}

// The worker knows a pipeline by its number; the user by the dataset's name.
std::exception_ptr Engine::input_error(const ErrorParts& parts, const Lane& lane) const {
  const std::string& worker = lane.worker->name;
  std::uint64_t pipeline = *parts.input_pipeline;
  std::string name =
      pipeline < pipeline_book_.size() ? pipeline_book_[pipeline].name() : std::to_string(pipeline);
  std::string message =
      str("pipeline \"", name, "\" could not be read on ", worker, ": ", parts.message);
  return std::make_exception_ptr(ClosureInputError(parts.code, message, worker, pipeline));
}

// Long enough for the engine to see the loss that the worker saw first.
rpc::Task<void> Engine::run_again_later(std::shared_ptr<Closure> closure) {
  co_await parts_.reactor.sleep(kRetryPause);
  queue_->put_back(std::move(closure));
}

void Engine::spend_elements(const Closure& closure) {
  for (const TakeRecord& take : closure.takes) pipeline_book_[take.pipeline].commit(take, 0, {});
}

// From this moment on, not only once it runs again: a cut in between would hold half of it.
void Engine::torn(Closure& closure) {
  if (!closure.function->updates || closure.attempts == 0 ||
      std::exchange(closure.maybe_torn, true))
    return;
  ++torn_;
}

void Engine::not_torn(Closure& closure) {
  if (!std::exchange(closure.maybe_torn, false)) return;
  --torn_;
  changed();
}

}  // namespace cairn
