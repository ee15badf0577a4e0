// The lanes of a ClosureScheduler come and go, learn where shards are, and hold their pushes for a
// cut.

#include <algorithm>
#include <utility>

#include "coordinator/dispatch/closure_scheduler.h"

namespace cairn {
namespace {
constexpr Duration kHoldDeadline = std::chrono::seconds(30);
}  // namespace

// ---- lanes that come and go ----

// A connection is a life of its own: nothing that an earlier one brought to the worker is relied
// upon, not even functions that the worker's process still has.
void ClosureScheduler::renew(LaneState& lane) {
  lane.newest_layout = 0;
  lane.functions.clear();
  lane.pipelines.clear();
  lane.late.clear();
  lane.calls = 0;
  lane.answers = 0;
  lane.group = 0;
  lane.window = SendWindow(session_.options.pipeline_depth,
                           policy_.lane_window(session_.options.send_window));
}

void ClosureScheduler::admit(LaneState& lane) {
  lane.kept_out = members_.pushes_held;
  weigh(lane);
}

void ClosureScheduler::abandon(LaneState& lane,
                               std::vector<std::shared_ptr<Closure>>& interrupted) {
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

// Those that have had a layout. Others are sent one with their first closure.
void ClosureScheduler::spread_layout() {
  members_.urgent_layout = 0;
  for (LaneState* lane : members_.lanes)
    if (lane->ready && lane->newest_layout != 0 && lane->newest_layout < tables_.synced_version())
      lane->tasks->spawn("send the layout", send_layout(lane, tables_.synced()));
}

rpc::Task<void> ClosureScheduler::send_layout(LaneState* lane,
                                              std::shared_ptr<const Layout> layout) {
  try {
    co_await lane->client->set_layout(layout);
    lane->newest_layout = std::max(lane->newest_layout, layout->version);
  } catch (const UnavailableError&) {  // Workers sees the loss
  }
}

// ---- lanes hold their pushes for a cut ----

// Only a wait that begins is news to a policy. One may also end because the engine does, which runs
// nothing any more that is posted.
void ClosureScheduler::cut_waits(bool waits) {
  if (outcomes_.cut_waits(waits) && waits) wake();
}

// Every lane that may push: one that comes later is kept out until release_pushes().
rpc::Task<void> ClosureScheduler::hold_pushes() {
  members_.pushes_held = true;
  std::vector<kj::Promise<void>> holds;
  for (LaneState* lane : members_.lanes) {
    if (!lane->ready) continue;
    std::string what = str("holding the pushes of ", lane->worker->name, " lane ", lane->index,
                           " for a checkpoint");
    holds.push_back(session_.parts.reactor.with_deadline(hold_lane(lane), kHoldDeadline, what));
  }
  for (auto& hold : holds) co_await kj::mv(hold);
}

// Ends when no push of the lane is under way, and what became of its closures is known here: one
// that failed between two shards is torn from then on only.
rpc::Task<void> ClosureScheduler::hold_lane(LaneState* lane) {
  const LaneIncarnation incarnation = lane->incarnation;
  const std::uint64_t ended = co_await lane->client->hold_pushes();
  while (lane->incarnation == incarnation && lane->answers < ended)
    co_await session_.changed.wait();
}

void ClosureScheduler::release_pushes() {
  members_.pushes_held = false;
  for (LaneState* lane : members_.lanes) {
    lane->kept_out = false;
    weigh(*lane);
    if (lane->ready && lane->client)
      lane->tasks->spawn("release pushes", lane->client->release_pushes());
  }
  pump();
}

bool ClosureScheduler::all_committed(const AppliedClosures& applied) const {
  for (const LaneState* lane : members_.lanes)
    for (const auto& [sequence, closure] : lane->inflight)
      if (closure->function->updates && applied.contains(sequence)) return false;
  return true;
}

}  // namespace cairn
