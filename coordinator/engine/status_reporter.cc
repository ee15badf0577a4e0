#include "coordinator/engine/status_reporter.h"

#include "coordinator/engine/staleness_json.h"
#include "core/base/machine.h"
#include "rpc/loop/memory_use.h"

namespace cairn {
namespace {

constexpr Duration kRefresh = std::chrono::milliseconds(200);
constexpr Duration kPollDeadline = std::chrono::seconds(2);
constexpr int kPollEvery = 5;  // refreshes between two questions to a task

// A task's own status is for people. Nothing about it is taken on trust: not its size, depth or
// letters.
Json details_of(const std::string& own) {
  constexpr std::size_t kBytesMax = 1 << 20;
  constexpr int kDepthMax = 16;
  try {
    if (own.size() <= kBytesMax) return parse_json(own, "its answer", kDepthMax);
  } catch (const InvalidArgumentError&) {
  }
  return "its answer cannot be read";
}

Json task_json(const ClusterMember& member) {
  Json task{{"task", member.name}, {"address", member.address}, {"ready", member.ready}};
  if (!member.trouble.empty()) task["trouble"] = member.trouble;
  if (!member.status.empty()) task["details"] = details_of(member.status);
  return task;
}

// How many backups its shards have that could take over, and how many they should have.
void show_replicas(Json& task, const Ps& ps, std::size_t replicas) {
  task["in_sync"] = ps.in_sync;
  task["backups"] = ps.placed.size() * (replicas - 1);
}

Json stuck_json(const StuckClosure& stuck) {
  const ClosureProgress& at = stuck.closure;
  Json out{{"sequence", at.sequence},
           {"function", at.function},
           {"step", at.step},
           {"seconds", std::chrono::duration<double>(stuck.still).count()}};
  if (!at.worker.empty()) {
    out["worker"] = at.worker;
    out["lane"] = at.lane;
  }
  out["waits_for"] = at.waits_for;
  out["text"] = stuck_text(stuck);
  return out;
}

}  // namespace

EngineStats StatusReporter::stats() const {
  QueueCounts counts = session_.queue.counts();
  EngineStats now = session_.stats.read();
  now.retried = counts.retried;
  now.uptime_seconds = session_.uptime();
  return now;
}

// Any thread reads the text. The loop makes it and swaps it in, so that the mutex is not held while
// the text is put together.
std::string StatusReporter::json() const {
  std::lock_guard hold(mutex_);
  return json_;
}

void StatusReporter::set_program(Json said) {
  std::lock_guard hold(mutex_);
  program_ = std::move(said);
}

std::vector<MissingTask> StatusReporter::missing() const {
  std::lock_guard hold(mutex_);
  return missing_;
}

Json StatusReporter::make_status() const {
  EngineStats now = stats();
  QueueCounts counts = session_.queue.counts();
  Json status{{"global_step", now.global_step},
              {"uptime_seconds", session_.uptime()},
              {"term", session_.term.number},
              {"queued", counts.queued},
              {"inflight", counts.inflight},
              {"finished", counts.finished},
              {"retried", counts.retried},
              {"lost_updates", now.lost_updates},
              {"staleness_mean", now.staleness_mean},
              {"staleness_max", now.staleness_max},
              {"staleness_p50", now.staleness.quantile(0.5)},
              {"staleness_p99", now.staleness.quantile(0.99)},
              {"staleness_histogram", histogram_json(now.staleness)},
              {"consistency", session_.options.consistency.text()},
              {"checkpoints", now.checkpoints},
              {"checkpoints_failed", now.checkpoints_failed},
              {"checkpoint_error", now.checkpoint_error},
              {"last_checkpoint", now.last_checkpoint},
              {"memory_bytes", private_memory_bytes()},
              {"buffer_bytes", rpc::buffer_bytes()},
              {"ps", Json::array()},
              {"workers", Json::array()},
              {"stuck", Json::array()},
              {"losses", Json::array()}};
  for (const auto& ps : members_.ps) {
    Json task = task_json(*ps);
    if (const auto replicas = session_.options.recovery.replicas; replicas > 1)
      show_replicas(task, *ps, replicas);
    status["ps"].push_back(std::move(task));
  }
  for (const auto& worker : members_.workers) {
    Json task = task_json(*worker);
    for (const auto& lane : worker->lanes) task["inflight"].push_back(lane->inflight.size());
    status["workers"].push_back(std::move(task));
  }
  // Shown at once, not only when the closure is stuck: the lane that it names slows all others.
  if (const auto front = session_.queue.front())
    if (std::string held = gate_.policy().held_back(*front); !held.empty())
      status["held_by_bound"] = std::move(held);
  for (const StuckClosure& one : stuck_) status["stuck"].push_back(stuck_json(one));
  for (const LossReport& loss : now.losses)
    status["losses"].push_back({{"task", loss.task},
                                {"reason", loss.reason},
                                {"at_seconds", loss.at_seconds},
                                {"back_after_seconds", loss.back_after_seconds},
                                {"first_push_after_seconds", loss.first_push_after_seconds},
                                {"lost_updates", loss.lost_updates}});
  return status;
}

namespace {
// Asks one task for its own figures; a task that is away keeps its last ones.
rpc::Task<void> poll(rpc::Reactor* reactor, ClusterMember* task) {
  if (!task->ready || !task->control) co_return;
  try {
    std::string what = "asking for the status of " + task->name;
    std::string answer =
        co_await reactor->with_deadline(task->control->status(), kPollDeadline, what);
    task->status = std::move(answer);
    task->status_at = reactor->clock().now();
  } catch (const Error&) {
    // The heartbeat judges; a slow answer is no news.
  }
}
}  // namespace

void StatusReporter::refresh() {
  Json status = make_status();
  {
    std::lock_guard hold(mutex_);
    if (!program_.is_null()) status["program"] = program_;
  }
  std::string text = json_text(status);
  {
    std::lock_guard hold(mutex_);
    json_ = std::move(text);
    missing_ = session_.started ? std::vector<MissingTask>{} : members_.not_connected();
  }
  session_.stats.edit([this](EngineStats& stats) {
    stats.ps = static_cast<std::uint32_t>(members_.ps.size());
    stats.workers = static_cast<std::uint32_t>(members_.workers.size());
    stats.ps_ready = stats.workers_ready = 0;
    for (const auto& ps : members_.ps) stats.ps_ready += ps->ready;
    for (const auto& worker : members_.workers) stats.workers_ready += worker->ready;
  });
}

rpc::Task<void> StatusReporter::run() {
  for (int round = 0;; ++round) {
    if (round % kPollEvery == 0) {
      for (ClusterMember* member : members_.all())
        session_.tasks.spawn("poll a task", poll(&session_.parts.reactor, member));
    }
    // Just before the next poll, when the answers to the last one have had time to arrive.
    if (round % kPollEvery == kPollEvery - 1) look_for_stuck();
    refresh();
    co_await session_.parts.reactor.sleep(kRefresh);
  }
}

}  // namespace cairn
