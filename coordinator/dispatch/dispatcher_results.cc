// What becomes of a closure that was sent: its results, its errors, and another run.

#include <utility>

#include "coordinator/cluster/reply_wire.h"
#include "coordinator/dispatch/dispatcher.h"
#include "core/base/log.h"

namespace cairn {
namespace {
constexpr Duration kRetryPause = std::chrono::milliseconds(20);
}  // namespace

rpc::Task<void> Dispatcher::run_on(Lane* lane, LaneMessage message) {
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
  // The call fails some turns of the loop before the connection counts as ended. Taken for the
  // failure of its closures, it would queue them before the lane is fenced. So they stay in flight
  // until Workers, which sees the end of the connection, has the lane abandoned.
  if (error && error_parts(error).code == Code::kUnavailable) {
    lane->client->connection().close();
    co_return;
  }
  const std::size_t answers = replies.size();
  // A call that brought no closure only waited for results, and whatever it would have told is lost
  // with it: the connection is ended, so that everything the lane has runs again.
  if (error) {  // none of these has begun
    if (sent.empty()) lane->client->connection().close();
    for (const std::uint64_t sequence : sent)
      replies.push_back({.sequence = sequence, .error = error});
  }
  for (LaneReply& reply : replies) answered(*lane, std::move(reply));
  // Counted once they are dealt with, for hold_lane() concludes from the number that what became of
  // these closures is known.
  lane->answers += answers;
  if (holding_) session_.changed.notify_all();
  weigh(*lane);
  owe(*lane);
  pump();
}

void Dispatcher::answered(Lane& lane, LaneReply reply) {
  // A lane that answers what it was not sent cannot be believed about the rest either.
  const std::shared_ptr<Closure> closure = lane.inflight.find(reply.sequence);
  if (!closure && lane.late.erase(reply.sequence) > 0) return answered_late(lane, reply);
  if (!closure) {
    log_error(lane.worker->name, " answers closure ", reply.sequence,
              ", which it does not have; its connection is ended");
    return lane.client->connection().close();
  }
  lane.window.answered(clock_.now());
  try {
    if (reply.error) std::rethrow_exception(reply.error);
    verify_reply(reply, closure->function->concrete->graph, closure->takes.size());
    succeeded(lane, closure, std::move(reply));
  } catch (...) {
    went_wrong(lane, closure, std::current_exception());
  }
}

// Its round was applied without it: what became of this run is of no interest, but that the lane
// has time again.
void Dispatcher::answered_late(Lane& lane, const LaneReply& reply) {
  lane.window.answered(clock_.now());
  if (reply.error && error_parts(reply.error).code == Code::kCancelled)
    lane.client->connection().close();  // the lane is fenced
}

// All books are kept in one go, without a wait in between: a cut finds the closure committed in
// each of them, or in none.
void Dispatcher::succeeded(Lane& lane, const std::shared_ptr<Closure>& closure, LaneReply reply) {
  lane.inflight.remove(closure->sequence);
  // A member ends with its round. Under HybridStrategy its rows of tables are applied by now.
  if (gate_.rounds().takes(*closure)) {
    if (gate_.rounds().mirrors()) begin_torn(*closure);
    return gate_.rounds().answered(*closure, lane, std::move(reply));
  }
  if (!closure->takes.empty()) commit_elements(*closure, reply);
  not_torn(*closure);
  gate_.bound().ended(*closure);
  gate_.rounds().gone(*closure);
  if (closure->function->updates) {
    progress_.commit_steps(closure->function->steps);
    count_update(lane, *closure, reply);
    if (progress_.save_due()) save_is_due_();
  }
  queue_.finish(*closure, std::move(reply.outputs));
}

// A lane that did not tell the iterator's state has read the elements all the same.
void Dispatcher::commit_elements(const Closure& closure, LaneReply& reply) {
  for (std::size_t i = 0; i < closure.takes.size(); ++i) {
    const TakeRecord& take = closure.takes[i];
    if (i >= reply.states.size()) {
      progress_.commit_elements(take, 0, {});
      continue;
    }
    LaneReply::State& state = reply.states[i];
    if (const auto news = progress_.count_skipped(take.pipeline, state.skipped); news > 0)
      session_.stats.edit([news](EngineStats& stats) { stats.skipped_rows += news; });
    progress_.commit_elements(take, state.ordinal, std::move(state.bytes));
  }
}

void Dispatcher::count_update(Lane& lane, const Closure& closure, const LaneReply& reply) {
  bool news = losses_.commit(closure.sequence, closure.sent_layout);
  if (lane.worker->ready && lane.worker->absence)
    news |= losses_.first_push(lane.worker->absence, session_.uptime());
  for (auto& ps : members_.ps)
    if (ps->ready && ps->absence) news |= losses_.first_push(ps->absence, session_.uptime());
  if (news) session_.stats.publish(losses_);
  session_.stats.edit([&](EngineStats& stats) {
    ++stats.updates;
    stats.global_step = progress_.global_step();
    stats.staleness.add(reply.staleness);
    stats.staleness_max = stats.staleness.max();
    stats.staleness_mean = stats.staleness.mean();
  });
}

void Dispatcher::went_wrong(Lane& lane, const std::shared_ptr<Closure>& closure,
                            std::exception_ptr error) {
  ErrorParts parts = error_parts(error);
  // Workers finds the loss, fences the lane and only then queues what was in flight. To queue it
  // here would run it elsewhere while the lost lane can still push.
  if (!lane.ready || !lane.client || !lane.client->connection().connected()) return;
  faltered(*closure);
  // Whatever its code, this is the fault of the data and not of the worker: to run it again
  // elsewhere would meet it again.
  if (parts.input_pipeline && parts.code == Code::kOutOfRange) {
    lane.inflight.remove(closure->sequence);
    return data_ended(closure, parts);
  }
  if (parts.input_pipeline) {
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
        // A ps went away in the middle: it may have this closure's push while others do not, or the
        // other way round.
        torn(*closure);
        if (parts.code == Code::kUnavailable)
          session_.tasks.spawn("run a closure again", run_again_later(closure));
        else
          queue_.put_back(closure);
        return;
      }
      [[fallthrough]];
    default: lane.inflight.remove(closure->sequence); fail(*closure, error);
  }
}

// Under synchronous(b) the program is told at once: a round must not wait for members that there
// is no data for.
void Dispatcher::data_ended(std::shared_ptr<Closure> closure, const ErrorParts& end) {
  if (gate_.rounds().on())
    return fail(*closure, std::make_exception_ptr(OutOfRangeError(end.message, end.task)));
  progress_.data_ended(*closure, *end.input_pipeline);
  queue_.put_back(std::move(closure));
}

void Dispatcher::fail(Closure& closure, std::exception_ptr error) {
  // Nobody completes it any more: its elements are not taken again, and no cut waits for it.
  progress_.spend_elements(closure);
  not_torn(closure);
  gate_.bound().ended(closure);
  gate_.rounds().gone(closure);
  queue_.fail(closure, error);
}

// The worker knows a pipeline by its number; the user by the dataset's name.
std::exception_ptr Dispatcher::input_error(const ErrorParts& parts, const Lane& lane) const {
  const std::string& worker = lane.worker->name;
  std::uint64_t pipeline = *parts.input_pipeline;
  const std::string name = progress_.pipeline_name(pipeline);
  std::string message =
      str("pipeline \"", name, "\" could not be read on ", worker, ": ", parts.message);
  return std::make_exception_ptr(ClosureInputError(parts.code, message, worker, pipeline));
}

// Long enough for the engine to see the loss that the worker saw first.
rpc::Task<void> Dispatcher::run_again_later(std::shared_ptr<Closure> closure) {
  co_await session_.parts.reactor.sleep(kRetryPause);
  queue_.put_back(std::move(closure));
}

rpc::Task<void> Dispatcher::pump_later() {
  co_await session_.parts.reactor.sleep(kRetryPause);
  pump();
}

// From this moment on, not only once it runs again: a cut in between would hold half of it. Of a
// member nothing is applied before its round is, but, under HybridStrategy, rows of tables.
void Dispatcher::torn(Closure& closure) {
  const Rounds& rounds = gate_.rounds();
  if (!closure.function->updates || closure.attempts == 0) return;
  if (rounds.takes(closure) && !rounds.mirrors()) return;
  begin_torn(closure);
}

void Dispatcher::not_torn(Closure& closure) {
  if (!std::exchange(closure.maybe_torn, false)) return;
  --torn_;
  session_.changed.notify_all();
}

}  // namespace cairn
