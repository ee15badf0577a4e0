// StatusReporter finds what closures wait for, from the engine and the workers' own statuses.

#include <algorithm>

#include "coordinator/engine/reported_closure.h"
#include "coordinator/engine/status_reporter.h"
#include "core/base/log.h"
#include "rpc/loop/waits.h"

namespace cairn {
namespace {

using Stage = ClosureProgress::Stage;

// Bounds on what is reported at a time, so that a cluster in trouble does not fill the log.
constexpr std::size_t kToldAtOnce = 10;       // lines of the log
constexpr std::size_t kClosuresLogged = 100;  // on demand

ClosureProgress progress_of(const Closure& closure) {
  ClosureProgress progress;
  progress.sequence = closure.sequence;
  progress.function = closure.function->name;
  progress.step = closure.global_step;
  progress.attempts = closure.attempts;
  return progress;
}

}  // namespace

// Why the closure at the head of the queue is not sent.
std::string StatusReporter::queued_for(const Closure& closure) const {
  if (std::string obstacle = gate_.obstacle(closure); !obstacle.empty()) return obstacle;
  std::size_t ready = 0;
  for (const LaneState* lane : members_.lanes) ready += lane->ready;
  if (ready == 0) return "waiting for a worker: all are away";
  return str("waiting for a lane: the ", ready,
             " that are there have as many closures as they take");
}

std::string StatusReporter::waits_for(const ReportedClosure& closure) const {
  for (const auto& one : members_.ps)
    if (one->index == closure.ps && closure.shard >= 0 && closure.shard < 1e6)
      return str(closure.doing, " ", one->name, " shard ",
                 static_cast<std::int64_t>(closure.shard));
  return closure.doing;
}

void StatusReporter::see_lane(const LaneState& lane, const std::vector<ReportedClosure>& reported,
                              std::vector<ClosureProgress>& out) const {
  const auto add = [&](const Closure& closure, Stage stage, std::string waits_for,
                       Duration since = Duration(-1)) {
    out.push_back(progress_of(closure));
    out.back().stage = stage;
    out.back().worker = lane.worker->name;
    out.back().lane = lane.index;
    out.back().waits_for = std::move(waits_for);
    out.back().since = since;
  };
  if (lane.preparing)
    add(*lane.preparing, Stage::kPreparing,
        "waiting for the lane to take the layout, its function and its data");
  // The worker's answer was polled some time ago, and its closure has gone on waiting since: the
  // age of the answer is added to its times. A time beyond the engine's own life is nonsense.
  const Duration old = session_.parts.clock.now() - lane.worker->status_at;
  bool begun = false;
  for (const ReportedClosure& one : reported) {
    const auto closure = lane.inflight.find(one.sequence);
    // It has ended here since the worker answered.
    if (!closure) continue;
    begun = true;
    const double seconds = std::clamp(one.seconds, 0.0, session_.uptime());
    const auto since =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)) + old;
    add(*closure, one.stage, waits_for(one), since);
  }
  // Only the first closure that waits at a lane is shown: those behind it are not stuck themselves.
  if (!begun && lane.inflight.size() > 0)
    add(*lane.inflight.begin()->closure, Stage::kSent, "sent, and not begun there");
}

std::vector<ClosureProgress> StatusReporter::see_closures() {
  std::vector<ClosureProgress> all;
  if (const auto front = session_.queue.front()) {
    all.push_back(progress_of(*front));
    all.back().waits_for = queued_for(*front);
  }
  // Those that are held wait alike: one of them stands for all.
  if (auto held = gate_.policy().held()) {
    all.push_back(progress_of(held->closure));
    all.back().stage = Stage::kHeld;
    all.back().worker = held->lane.worker->name;
    all.back().lane = held->lane.index;
    all.back().waits_for = std::move(held->waits_for);
  }
  for (const auto& worker : members_.workers) {
    if (!worker->ready) continue;
    const auto lanes = reported_closures(worker->status);
    for (const auto& lane : worker->lanes)
      see_lane(*lane,
               lane->index < lanes.size() ? lanes[lane->index] : std::vector<ReportedClosure>(),
               all);
  }
  return all;
}

void StatusReporter::look_for_stuck() {
  stuck_ = stuck_watch_.look(session_.parts.clock.now(), see_closures());
  // A ps that is away stops many closures at once. The log names a few of them, and the status all.
  std::size_t told = 0;
  for (const StuckClosure& one : stuck_) {
    if (!one.to_tell || ++told > kToldAtOnce) continue;
    log_warning(stuck_text(one));
  }
  if (told > kToldAtOnce)
    log_warning(told - kToldAtOnce,
                " more closures have made no progress; `cairn status` names them");
}

void StatusReporter::log_waits() {
  const QueueCounts counts = session_.queue.counts();
  log_info("waits: the coordinator, session ", session_.number,
           ", is asked what it waits for: ", counts.queued, " closures queued, ", counts.inflight,
           " running, ", counts.finished, " done",
           checkpoints_.busy() ? "; a checkpoint is saved or restored" : "",
           tables_.held() ? "; tables are made or restored" : "");
  for (const auto& ps : members_.ps)
    log_info("waits: ", ps->name, " at ", ps->address,
             ps->ready ? " is there" : str(" is away: ", ps->trouble));
  for (const auto& worker : members_.workers)
    log_info("waits: ", worker->name, " at ", worker->address,
             worker->ready ? " is there" : str(" is away: ", worker->trouble));
  const auto closures = see_closures();
  for (std::size_t i = 0; i < std::min(closures.size(), kClosuresLogged); ++i) {
    const ClosureProgress& at = closures[i];
    const std::string place = at.worker.empty() ? std::string("the head of the queue")
                                                : str(at.worker, " lane ", at.lane);
    const std::string since =
        at.since < Duration(0)
            ? std::string()
            : str(", for ", fixed(std::chrono::duration<double>(at.since).count(), 1), " s");
    const std::string step = at.step < 0 ? std::string() : str(", step ", at.step);
    log_info("waits: closure ", at.sequence, " (", at.function, step, ") at ", place, ": ",
             at.waits_for, since);
  }
  rpc::log_tasks_here("the coordinator's loop");
}

}  // namespace cairn
