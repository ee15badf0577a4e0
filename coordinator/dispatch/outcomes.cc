#include "coordinator/dispatch/outcomes.h"

#include <utility>

#include "core/graph/graph.h"

namespace cairn {

Outcomes::Outcomes(Session& session, const ClusterMembers& members, ProgressBook& progress,
                   LossLedger& losses, Recorder& recorder, std::function<void()> save_is_due)
    : session_(session),
      members_(members),
      progress_(progress),
      losses_(losses),
      recorder_(recorder),
      save_is_due_(std::move(save_is_due)) {}

void Outcomes::commit(Closure& closure, LaneState& lane, LaneReply& reply) {
  const std::int64_t steps = closure.function->updates ? closure.function->steps : 0;
  progress_.commit_steps(steps);
  finish(closure, lane, reply, steps);
  if (closure.function->updates) save_if_due();
}

void Outcomes::commit(std::span<Result> results) {
  std::int64_t steps = results.front().closure->function->steps;
  progress_.commit_steps(steps);
  for (Result& result : results)
    finish(*result.closure, *result.lane, result.reply, std::exchange(steps, 0));
  save_if_due();
}

void Outcomes::finish(Closure& closure, LaneState& lane, LaneReply& reply, std::int64_t steps) {
  recorder_.ended(closure, closure.function->updates, steps, reply.states);
  if (!closure.takes.empty()) commit_elements(closure, reply);
  not_torn(closure);
  if (closure.function->updates) count_update(closure, *lane.worker, reply.staleness);
  session_.queue.finish(closure, std::move(reply.outputs));
}

void Outcomes::save_if_due() {
  if (progress_.save_due()) save_is_due_();
}

// A lane that did not tell the iterator's state has read the elements all the same.
void Outcomes::commit_elements(const Closure& closure, LaneReply& reply) {
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

void Outcomes::count_update(const Closure& closure, Worker& worker, std::uint64_t staleness) {
  bool news = losses_.commit(closure.sequence, closure.sent_layout);
  if (worker.ready && worker.absence) news |= losses_.first_push(worker.absence, session_.uptime());
  for (auto& ps : members_.ps)
    if (ps->ready && ps->absence) news |= losses_.first_push(ps->absence, session_.uptime());
  if (news) session_.stats.publish(losses_);
  session_.stats.edit([&](EngineStats& stats) {
    ++stats.updates;
    stats.global_step = progress_.global_step();
    stats.staleness.add(staleness);
    stats.staleness_max = stats.staleness.max();
    stats.staleness_mean = stats.staleness.mean();
  });
}

void Outcomes::fail(Closure& closure, std::exception_ptr error) {
  cancelled(closure);
  session_.queue.fail(closure, with_origin(std::move(error), closure.function->concrete->graph));
}

// No lane completes the closure any more: its elements are not taken again, and no cut waits for
// it.
void Outcomes::cancelled(Closure& closure) {
  recorder_.ended(closure, false, 0, {});
  progress_.spend_elements(closure);
  not_torn(closure);
}

void Outcomes::run_again_later(std::shared_ptr<Closure> closure) {
  session_.tasks.spawn("run a closure again", put_back_later(std::move(closure)));
}

rpc::Task<void> Outcomes::put_back_later(std::shared_ptr<Closure> closure) {
  co_await session_.parts.reactor.sleep(kRetryPause);
  session_.queue.put_back(std::move(closure));
}

void Outcomes::torn(Closure& closure) {
  if (!std::exchange(closure.maybe_torn, true)) ++torn_;
}

void Outcomes::not_torn(Closure& closure) {
  if (!std::exchange(closure.maybe_torn, false)) return;
  --torn_;
  session_.changed.notify_all();
}

bool Outcomes::cut_waits(bool waits) { return std::exchange(cut_waits_, waits) != waits; }

}  // namespace cairn
