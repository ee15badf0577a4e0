#include "coordinator/dispatch/outcomes.h"

#include <utility>

namespace cairn {

Outcomes::Outcomes(Session& session, const ClusterMembers& members, ProgressBook& progress,
                   LossLedger& losses, std::function<void()> save_is_due)
    : session_(session),
      members_(members),
      progress_(progress),
      losses_(losses),
      save_is_due_(std::move(save_is_due)) {}

void Outcomes::commit(std::span<Result> results) {
  const RegisteredFunction& function = *results.front().closure->function;
  if (function.updates) progress_.commit_steps(function.steps);
  for (Result& result : results) {
    Closure& closure = *result.closure;
    if (!closure.takes.empty()) commit_elements(closure, result.reply);
    not_torn(closure);
    if (function.updates) count_update(result);
    session_.queue.finish(closure, std::move(result.reply.outputs));
  }
  if (function.updates && progress_.save_due()) save_is_due_();
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

void Outcomes::count_update(const Result& result) {
  Worker& worker = *result.lane->worker;
  bool news = losses_.commit(result.closure->sequence, result.closure->sent_layout);
  if (worker.ready && worker.absence) news |= losses_.first_push(worker.absence, session_.uptime());
  for (auto& ps : members_.ps)
    if (ps->ready && ps->absence) news |= losses_.first_push(ps->absence, session_.uptime());
  if (news) session_.stats.publish(losses_);
  session_.stats.edit([&](EngineStats& stats) {
    ++stats.updates;
    stats.global_step = progress_.global_step();
    stats.staleness.add(result.reply.staleness);
    stats.staleness_max = stats.staleness.max();
    stats.staleness_mean = stats.staleness.mean();
  });
}

void Outcomes::fail(Closure& closure, std::exception_ptr error) {
  cancelled(closure);
  session_.queue.fail(closure, std::move(error));
}

// No lane completes the closure any more: its elements are not taken again, and no cut waits for
// it.
void Outcomes::cancelled(Closure& closure) {
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
