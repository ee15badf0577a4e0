#include "coordinator/dispatch/dispatcher.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cairn {
namespace {
// The closures that go to a lane together have at most so many bytes; a larger one goes alone.
constexpr std::size_t kMessageBytes = 1 << 20;
// So many calls wait at a lane for results. While one of them travels back with an answer, the next
// results find the other.
constexpr std::size_t kCallsWaiting = 2;
}  // namespace

Dispatcher::Dispatcher(Session& session, ClusterMembers& members, ShardTables& tables,
                       DispatchGate& gate, Announcer& announcer, ProgressBook& progress,
                       LossLedger& losses, std::function<void()> save_is_due)
    : session_(session),
      members_(members),
      tables_(tables),
      gate_(gate),
      announcer_(announcer),
      progress_(progress),
      losses_(losses),
      queue_(session.queue),
      clock_(session.parts.clock),
      save_is_due_(std::move(save_is_due)),
      mailbox_(session.parts.reactor.mailbox()) {}

// One post for however many closures are queued before the loop comes to it.
void Dispatcher::wake() {
  if (!wake_posted_.exchange(true)) mailbox_->post([this] { pump(); });
}

// All that goes to a lane now goes in one message.
void Dispatcher::pump() {
  // Cleared before the queue is looked at: a closure that is put from here on posts another
  // wake-up. Cleared after the look, it would fall between the two and wait for the next one.
  wake_posted_ = false;
  if (!session_.started) return;
  // Closures that came back from a lost lane and were then cancelled: their elements are not read
  // by anybody else, and no cut has to wait for them.
  for (const auto& closure : queue_.take_cancelled()) {
    progress_.spend_elements(*closure);
    not_torn(*closure);
    gate_.bound().ended(*closure);
    gate_.rounds().gone(*closure);
  }
  if (gate_.rounds().on()) {
    settle_round();
    settle_group();
    dispatch_in_rounds();
    settle_group();  // what was just sent may be all that there is for its round
  } else {
    dispatch_queued();
  }
  send_dispatched();
  if (announcer_.due()) announcer_.hurry();
}

// Neighbours go to one lane, as many as leave the others theirs: fewer messages, and memory is
// walked through in order.
void Dispatcher::dispatch_queued() {
  const std::size_t share = 1 + queue_.size() / std::max<std::size_t>(1, members_.lanes.size());
  for (auto next = next_queued(); next && gate_.open_for(*next); next = next_queued()) {
    const auto free = free_.first();
    if (!free) return;
    Lane& lane = *members_.lanes[*free];
    for (std::size_t i = 0; i < share && has_room(lane) && next && gate_.open_for(*next);
         ++i, next = next_queued())
      dispatch_next(lane);
    weigh(lane);
  }
}

// What the queue has next. A closure whose data has ended stays there for as long as other closures
// have elements of it, and those that came back go before it; then it fails.
std::shared_ptr<const Closure> Dispatcher::next_queued() {
  while (auto next = queue_.front()) {
    const PerWorkerDataset* ended = progress_.out_of_data(*next);
    if (!ended) return next;
    if (progress_.any_open(*ended)) {
      if (!queue_.bring_forward(
              [this](const Closure& other) { return !progress_.out_of_data(other); }))
        return nullptr;
    } else if (auto closure = queue_.pop()) {
      if (closure == next) {
        fail(*closure, std::make_exception_ptr(OutOfRangeError(
                           str("the data ended: dataset \"", ended->name(),
                               "\" has no more elements for \"", closure->function->name, "\""))));
      } else {
        queue_.put_back(std::move(closure));
      }
    }
  }
  return nullptr;
}

void Dispatcher::dispatch_next(Lane& lane) {
  auto closure = queue_.pop();
  // Another thread has cancelled it since front() saw it, and may have queued another one since.
  if (!closure) return;
  if (progress_.out_of_data(*closure)) return queue_.put_back(std::move(closure));
  if (!gate_.bound().admits(*closure)) return queue_.put_back(std::move(closure));
  // In the queue's order, whichever lane is ready first.
  if (gate_.rounds().on() && closure->function->updates) {
    // What was seen at the front may have been cancelled since: the lane was chosen for that one.
    const auto room = [&lane](const Lane& one) { return &one == &lane; };
    if (!gate_.rounds().admits(*closure) || gate_.rounds().lane_for(*closure, room) == nullptr)
      return queue_.put_back(std::move(closure));
    gate_.rounds().begins(
        closure, lane, [this, &closure] { return progress_.give_step(closure->function->steps); });
  } else if (closure->function->updates && closure->global_step < 0) {
    gate_.bound().began(*closure);
    closure->global_step = progress_.give_step(closure->function->steps);
  }
  // A lane that has to be prepared first is sent nothing else meanwhile (has_room), so that what it
  // is sent next finds the layout and the functions there.
  if (prepared(lane, *closure)) return dispatch(lane, std::move(closure));
  lane.preparing = closure;
  lane.tasks->spawn("prepare a lane", prepare(&lane, std::move(closure)));
}

bool Dispatcher::has_room(const Lane& lane) const {
  return lane.ready && !lane.kept_out && !lane.preparing &&
         lane.inflight.size() < lane.window.size();
}

// After any change of what decides whether a lane is sent closures, and how soon.
void Dispatcher::weigh(Lane& lane) {
  if (has_room(lane))
    free_.put(lane.number, lane.inflight.size());
  else
    free_.remove(lane.number);
}

bool Dispatcher::prepared(const Lane& lane, const Closure& closure) const {
  const auto& function = *closure.function;
  if (function.id >= lane.functions.size() || !lane.functions[function.id]) return false;
  if (function.uses_variables && lane.newest_layout != tables_.synced_version()) return false;
  for (const auto& dataset : closure.datasets) {
    std::uint64_t pipeline = progress_.source_of(*dataset, lane.number);
    if (!lane.pipelines.contains(pipeline)) return false;
  }
  for (const auto& take : closure.takes)
    if (take.count > 0 && !lane.pipelines.contains(take.pipeline)) return false;
  return true;
}

// If the lane is lost meanwhile, abandon() ends this coroutine and hands out the closure that it
// prepares for. After any other error the closure is treated like one that was sent: it fails, or
// goes back to the queue.
rpc::Task<void> Dispatcher::prepare(Lane* lane, std::shared_ptr<Closure> closure) {
  std::exception_ptr error;
  try {
    co_await send_preparations(lane, closure);
  } catch (...) {
    error = std::current_exception();
  }
  lane->preparing = nullptr;
  if (gate_.rounds().takes(*closure) && !gate_.rounds().has(*closure)) {
    queue_.put_back(closure);  // its round was applied without it
  } else if (error) {
    lane->inflight.add(closure);
    went_wrong(*lane, closure, error);
  } else if (progress_.out_of_data(*closure) || !prepared(*lane, *closure)) {
    queue_.put_back(closure);  // a pipeline has ended meanwhile
  } else {
    dispatch(*lane, closure);
  }
  weigh(*lane);
  pump();
}

// Each thing is noted as known to the lane only once it has acknowledged it. The layout is held by
// value, since the synced one may move on during the wait; the lane is then sent the newer one for
// its next closure.
rpc::Task<void> Dispatcher::send_preparations(Lane* lane, std::shared_ptr<Closure> closure) {
  auto function = closure->function;
  if (function->uses_variables && lane->newest_layout != tables_.synced_version()) {
    auto layout = tables_.synced();
    co_await lane->client->set_layout(layout);
    lane->newest_layout = layout->version;
  }
  if (function->id >= lane->functions.size()) lane->functions.resize(function->id + 1);
  if (!lane->functions[function->id]) {
    co_await lane->client->register_function(function->id, function->concrete);
    lane->functions[function->id] = true;
  }
  // A closure that runs again reads the elements that it took at first, which may be of another
  // lane's pipeline: this lane opens that one as well.
  std::vector<std::pair<std::uint64_t, const PerWorkerDataset*>> wanted;
  for (std::size_t i = 0; i < closure->datasets.size(); ++i) {
    const PerWorkerDataset* dataset = closure->datasets[i].get();
    wanted.emplace_back(progress_.source_of(*dataset, lane->number), dataset);
    if (i < closure->takes.size() && closure->takes[i].count > 0)
      wanted.emplace_back(closure->takes[i].pipeline, dataset);
  }
  for (auto [pipeline, dataset] : wanted) {
    if (lane->pipelines.contains(pipeline)) continue;
    co_await lane->client->open_pipeline(pipeline, dataset->description(pipeline));
    lane->pipelines[pipeline] = true;
  }
}

// Elements are taken once: each goes to one closure, whichever lane ends up running it. The layout
// of the attempt is kept for the ledger of losses, which tells by it whether the closure pushed to
// a process that is gone.
void Dispatcher::dispatch(Lane& lane, std::shared_ptr<Closure> closure) {
  if (!closure->datasets.empty()) progress_.take_elements(*closure, lane.number);
  ++closure->attempts;
  closure->sent_layout = lane.newest_layout;
  lane.inflight.add(closure);
  lane.outbox.push_back(std::move(closure));
  if (lane.inflight.size() == 1) lane.window.began(clock_.now());
  owe(lane);
}

void Dispatcher::owe(Lane& lane) {
  if (!std::exchange(lane.due, true)) due_.push_back(&lane);
}

void Dispatcher::send_dispatched() {
  // A lane that has closures always has calls waiting there for their results, if need be calls
  // that bring no closure. The list is taken first, since calls that end fill it anew.
  for (Lane* lane : std::exchange(due_, {})) {
    lane->due = false;
    if (!lane->ready) continue;  // Workers puts back what was dispatched
    const std::size_t owed = lane->inflight.size() + lane->late.size();
    while (!lane->outbox.empty() || lane->calls < std::min(kCallsWaiting, owed))
      lane->tasks->spawn("closures", run_on(lane, next_message(*lane)));
  }
}

LaneMessage Dispatcher::next_message(Lane& lane) {
  LaneMessage message{.sent_layout = lane.newest_layout, .lane_number = lane.number};
  // At most half of what the lane may hold, so that it works on one message while the other
  // travels.
  const std::size_t most = (lane.window.size() + 1) / 2;
  std::size_t count = 0;
  for (; count < std::min(most, lane.outbox.size()); ++count) {
    Closure& closure = *lane.outbox[count];
    const std::size_t bytes = LaneClient::message_bytes(closure, lane.number);
    if (count > 0 && message.bytes + bytes > kMessageBytes) break;
    message.bytes += bytes;
    for (const TakeRecord& take : closure.takes) {
      auto [ordinal, state] = progress_.base(take);
      message.takes.push_back({take, ordinal, *state});
    }
  }
  const auto end = lane.outbox.begin() + static_cast<std::ptrdiff_t>(count);
  message.closures.assign(std::make_move_iterator(lane.outbox.begin()),
                          std::make_move_iterator(end));
  lane.outbox.erase(lane.outbox.begin(), end);
  return message;
}

}  // namespace cairn
