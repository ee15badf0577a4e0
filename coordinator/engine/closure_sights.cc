// StatusReporter finds what closures wait for, from the engine and the workers' own statuses.

#include <algorithm>

#include "coordinator/engine/status_reporter.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "rpc/loop/waits.h"

namespace cairn {
namespace {

using Stage = ClosureSight::Stage;

// Bounds on what is reported at a time, so that a cluster in trouble does not fill the log.
constexpr std::size_t kToldAtOnce = 10;       // lines of the log
constexpr std::size_t kClosuresLogged = 100;  // on demand
constexpr std::size_t kClosuresOfALane = 66;  // a worker reports no more of one

ClosureSight sight_of(const Closure& closure) {
  ClosureSight sight;
  sight.sequence = closure.sequence;
  sight.function = closure.function->name;
  sight.step = closure.global_step;
  sight.attempts = closure.attempts;
  return sight;
}

// A worker's words are for people; the stage only orders them.
Stage stage_of(const std::string& doing) {
  const auto says = [&](const char* word) { return doing.find(word) != std::string::npos; };
  if (says("push")) return Stage::kPushing;
  if (says("held")) return Stage::kHeld;
  if (says("comput")) return Stage::kComputing;
  if (says("pull") || says("connect")) return Stage::kPulling;
  return Stage::kReading;
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>().substr(0, 100)
                                                   : std::string();
}
double number_of(const Json& json, const char* key, double otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
}

// JSON knows only one kind of number. A sequence number is converted after it was found to be in
// range, since the conversion of any other is undefined.
ToldClosure read_told(const Json& json) {
  if (!json.is_object()) return {};
  const double sequence = number_of(json, "sequence", 0);
  const bool sane = sequence >= 0 && sequence < 9e18;
  return {sane ? static_cast<std::uint64_t>(sequence) : 0, text_of(json, "doing"),
          number_of(json, "ps", -1), number_of(json, "shard", -1), number_of(json, "seconds", 0)};
}

// By lane. Nothing that a worker says of itself is taken on trust.
std::vector<std::vector<ToldClosure>> lanes_of(const std::string& status) {
  std::vector<std::vector<ToldClosure>> lanes;
  try {
    const Json own = parse_json(status, "a worker's status", 16);
    const auto found = own.is_object() ? own.find("lanes") : own.end();
    if (found == own.end() || !found->is_array()) return lanes;
    for (const Json& lane : *found) {
      std::vector<ToldClosure>& told = lanes.emplace_back();
      const auto closures = lane.is_object() ? lane.find("closures") : lane.end();
      if (closures == lane.end() || !closures->is_array()) continue;
      for (std::size_t i = 0; i < std::min(closures->size(), kClosuresOfALane); ++i)
        told.push_back(read_told((*closures)[i]));
    }
  } catch (const InvalidArgumentError&) {  // it has said nothing yet, or nonsense
  }
  return lanes;
}

}  // namespace

// Why the closure at the head of the queue is not sent.
std::string StatusReporter::queued_for(const Closure& closure) const {
  if (std::string obstacle = gate_.obstacle(closure); !obstacle.empty()) return obstacle;
  std::size_t ready = 0;
  for (const Lane* lane : members_.lanes) ready += lane->ready;
  if (ready == 0) return "waiting for a worker: all are away";
  return str("waiting for a lane: the ", ready,
             " that are there have as many closures as they take");
}

std::string StatusReporter::doing_of(const ToldClosure& told) const {
  for (const auto& one : members_.ps)
    if (one->index == told.ps && told.shard >= 0 && told.shard < 1e6)
      return str(told.doing, " ", one->name, " shard ", static_cast<std::int64_t>(told.shard));
  return told.doing;
}

void StatusReporter::see_lane(const Lane& lane, const std::vector<ToldClosure>& told,
                              std::vector<ClosureSight>& out) const {
  const auto add = [&](const Closure& closure, Stage stage, std::string waits_for,
                       Duration since = Duration(-1)) {
    out.push_back(sight_of(closure));
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
  for (const ToldClosure& one : told) {
    const auto closure = lane.inflight.find(one.sequence);
    // It has ended here since the worker answered.
    if (!closure) continue;
    begun = true;
    const double seconds = std::clamp(one.seconds, 0.0, session_.uptime());
    const auto since =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)) + old;
    const std::string doing = doing_of(one);
    add(*closure, stage_of(doing), doing, since);
  }
  // Only the first closure that waits at a lane is shown: those behind it are not stuck themselves.
  if (!begun && lane.inflight.size() > 0)
    add(*lane.inflight.begin()->closure, Stage::kSent, "sent, and not begun there");
}

std::vector<ClosureSight> StatusReporter::see_closures() {
  std::vector<ClosureSight> all;
  if (const auto front = session_.queue.front()) {
    all.push_back(sight_of(*front));
    all.back().waits_for = queued_for(*front);
  }
  // Those that are held wait alike: one of them stands for all.
  if (auto held = gate_.policy().held()) {
    all.push_back(sight_of(held->closure));
    all.back().stage = Stage::kHeld;
    all.back().worker = held->lane.worker->name;
    all.back().lane = held->lane.index;
    all.back().waits_for = std::move(held->waits_for);
  }
  for (const auto& worker : members_.workers) {
    if (!worker->ready) continue;
    const auto lanes = lanes_of(worker->status);
    for (const auto& lane : worker->lanes)
      see_lane(*lane, lane->index < lanes.size() ? lanes[lane->index] : std::vector<ToldClosure>(),
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
  const auto sights = see_closures();
  for (std::size_t i = 0; i < std::min(sights.size(), kClosuresLogged); ++i) {
    const ClosureSight& at = sights[i];
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
