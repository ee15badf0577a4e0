// How the dispatcher takes up lanes and lets them go, and has them hold their pushes during a cut.

#include <utility>

#include "coordinator/dispatch/dispatcher.h"

namespace cairn {
namespace {
constexpr Duration kHoldDeadline = std::chrono::seconds(30);
}  // namespace

// A connection is a life of its own: nothing that an earlier one brought to the worker is relied
// upon, not even functions that the worker's process still has.
void Dispatcher::renew(Lane& lane) {
  lane.newest_layout = 0;
  lane.functions.clear();
  lane.pipelines.clear();
  lane.late.clear();
  lane.calls = 0;
  lane.answers = 0;
  lane.group = 0;
  lane.window = SendWindow(session_.options.pipeline_depth,
                           gate_.bound().lane_window(session_.options.send_window));
}

void Dispatcher::admit(Lane& lane) {
  lane.kept_out = holding_;
  weigh(lane);
}

void Dispatcher::abandon(Lane& lane, std::vector<std::shared_ptr<Closure>>& interrupted) {
  lane.ready = false;
  weigh(lane);
  lane.tasks.reset();  // before the client, which its coroutines use
  lane.client.reset();
  lane.incarnation = 0;
  auto had = lane.inflight.take_all();
  if (lane.preparing) had.insert(had.begin(), std::exchange(lane.preparing, nullptr));
  lane.outbox.clear();
  lane.late.clear();
  for (auto& closure : had) {
    torn(*closure);
    interrupted.push_back(std::move(closure));
  }
}

// Every lane that may push: one that comes later is kept out until release_pushes().
rpc::Task<void> Dispatcher::hold_pushes() {
  holding_ = true;
  std::vector<kj::Promise<void>> holds;
  for (Lane* lane : members_.lanes) {
    if (!lane->ready) continue;
    std::string what = str("holding the pushes of ", lane->worker->name, " lane ", lane->index,
                           " for a checkpoint");
    holds.push_back(session_.parts.reactor.with_deadline(hold_lane(lane), kHoldDeadline, what));
  }
  for (auto& hold : holds) co_await kj::mv(hold);
}

// Ends when no push of the lane is under way, and what became of its closures is known here: one
// that failed between two shards is torn from then on only.
rpc::Task<void> Dispatcher::hold_lane(Lane* lane) {
  const LaneIncarnation incarnation = lane->incarnation;
  const std::uint64_t ended = co_await lane->client->hold_pushes();
  while (lane->incarnation == incarnation && lane->answers < ended)
    co_await session_.changed.wait();
}

void Dispatcher::release_pushes() {
  holding_ = false;
  for (Lane* lane : members_.lanes) {
    lane->kept_out = false;
    weigh(*lane);
    if (lane->ready && lane->client)
      lane->tasks->spawn("release pushes", lane->client->release_pushes());
  }
  pump();
}

bool Dispatcher::all_committed(const AppliedClosures& applied) const {
  for (const Lane* lane : members_.lanes)
    for (const auto& [sequence, closure] : lane->inflight)
      if (closure->function->updates && applied.contains(sequence)) return false;
  return true;
}

}  // namespace cairn
