#include "coordinator/dispatch/closure_scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "coordinator/cluster/reply_wire.h"
#include "core/base/log.h"

namespace cairn {
namespace {
// The closures that go to a lane together have at most so many bytes; a larger one goes alone.
constexpr std::size_t kMessageBytes = 1 << 20;
// So many calls wait at a lane for results. While one of them travels back with an answer, the next
// results find the other.
constexpr std::size_t kCallsWaiting = 2;
}  // namespace

ClosureScheduler::ClosureScheduler(Session& session, ClusterMembers& members, ShardTables& tables,
                                   DispatchGate& gate, ConsistencyPolicy& policy,
                                   Announcer& announcer, ProgressBook& progress, Outcomes& outcomes,
                                   Recorder& recorder)
    : session_(session),
      members_(members),
      tables_(tables),
      gate_(gate),
      policy_(policy),
      announcer_(announcer),
      progress_(progress),
      outcomes_(outcomes),
      recorder_(recorder),
      queue_(session.queue),
      clock_(session.parts.clock),
      mailbox_(session.parts.reactor.mailbox()) {}

// ---- queue -> lane ----

// One post for however many closures are queued before the loop comes to it.
void ClosureScheduler::wake() {
  if (wake_posted_->exchange(true)) return;
  mailbox_->post([this, there = std::weak_ptr(wake_posted_)] {
    if (!there.expired()) pump();
  });
}

// All that goes to a lane now goes in one message.
void ClosureScheduler::pump() {
  // Cleared before the queue is looked at: a closure that is put from here on posts another
  // wake-up. Cleared after the look, it would fall between the two and wait for the next one.
  *wake_posted_ = false;
  if (!session_.started) return;
  // Closures that came back from a lost lane and were then cancelled: their elements are read by no
  // other closure, and no cut has to wait for them.
  for (const auto& closure : queue_.take_cancelled()) {
    outcomes_.cancelled(*closure);
    policy_.ended(*closure);
  }
  if (members_.urgent_layout != 0 && tables_.synced_version() >= members_.urgent_layout)
    spread_layout();
  policy_.settle();
  dispatch_queued();
  policy_.sent();
  send_dispatched();
  if (announcer_.due()) announcer_.hurry();
}

// Neighbours go to one lane, as many as leave the others theirs, and as the policy would send
// there: fewer messages, and memory is walked through in order.
void ClosureScheduler::dispatch_queued() {
  const std::size_t share = 1 + queue_.size() / std::max<std::size_t>(1, members_.lanes.size());
  auto next = next_queued();
  while (next && may_be_sent(next)) {
    LaneState* lane = policy_.lane_for(*next, least_loaded());
    if (lane == nullptr) return;
    std::size_t sent = 0;
    do {
      dispatch_next(*lane, *next);
      next = next_queued();
    } while (++sent < share && lane->has_room() && next && gate_.open_for(*next) &&
             policy_.lane_for(*next, lane) == lane);
    weigh(*lane);
  }
}

// A closure that has to run first may stand behind one that is held back: then that one is next.
bool ClosureScheduler::may_be_sent(std::shared_ptr<const Closure>& next) {
  if (gate_.open_for(*next)) return true;
  const auto first = [this](const Closure& closure) { return policy_.goes_first(closure); };
  if (policy_.may_start(*next) || !queue_.bring_forward(first)) return false;
  next = queue_.front();
  return next && gate_.open_for(*next);
}

LaneState* ClosureScheduler::least_loaded() {
  while (const auto number = free_.first()) {
    LaneState* lane = members_.lanes[*number];
    if (lane->has_room()) return lane;
    free_.remove(*number);
  }
  return nullptr;
}

// Looks at the head of the queue. A closure whose data has ended stays there as long as others
// have elements of it, and those that came back go before it; then it fails.
std::shared_ptr<const Closure> ClosureScheduler::next_queued() {
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

void ClosureScheduler::dispatch_next(LaneState& lane, const Closure& next) {
  auto closure = queue_.pop();
  // Another thread has cancelled it since it was looked at, and may have queued another one since.
  if (closure.get() != &next) {
    if (closure) queue_.put_back(std::move(closure));
    return;
  }
  policy_.begun(closure, lane);
  // A lane that has to be prepared first is sent nothing else meanwhile (has_room), so that what it
  // is sent next finds the layout and the functions there.
  if (prepared(lane, *closure)) return dispatch(lane, std::move(closure));
  lane.preparing = closure;
  lane.tasks->spawn("prepare a lane", prepare(&lane, std::move(closure)));
}

// After any change of what decides whether a lane is sent closures, and how soon.
void ClosureScheduler::weigh(LaneState& lane) {
  if (lane.has_room())
    free_.put(lane.number, lane.inflight.size());
  else
    free_.remove(lane.number);
}

bool ClosureScheduler::prepared(const LaneState& lane, const Closure& closure) const {
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
rpc::Task<void> ClosureScheduler::prepare(LaneState* lane, std::shared_ptr<Closure> closure) {
  std::exception_ptr error;
  try {
    do {  // the layout may move on meanwhile
      co_await send_preparations(lane, closure);
    } while (closure->function->uses_variables && lane->newest_layout != tables_.synced_version());
  } catch (...) {
    error = std::current_exception();
  }
  lane->preparing = nullptr;
  if (!policy_.still_wanted(*closure)) {
    queue_.put_back(closure);
  } else if (error) {
    lane->inflight.add(closure);
    went_wrong(*lane, closure, error);
  } else if (progress_.out_of_data(*closure) || !prepared(*lane, *closure)) {
    policy_.lost(*closure);  // a pipeline has ended meanwhile
    queue_.put_back(closure);
  } else {
    dispatch(*lane, closure);
  }
  weigh(*lane);
  pump();
}

// Each thing is noted as known to the lane only once it has acknowledged it. The layout is held by
// value, since the synced one may move on during the wait.
rpc::Task<void> ClosureScheduler::send_preparations(LaneState* lane,
                                                    std::shared_ptr<Closure> closure) {
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
void ClosureScheduler::dispatch(LaneState& lane, std::shared_ptr<Closure> closure) {
  if (!closure->datasets.empty()) progress_.take_elements(*closure, lane.number);
  ++closure->attempts;
  closure->sent_layout = lane.newest_layout;
  recorder_.sent(*closure);
  lane.inflight.add(closure);
  lane.outbox.push_back(std::move(closure));
  if (lane.inflight.size() == 1) lane.window.began(clock_.now());
  owe(lane);
}

void ClosureScheduler::owe(LaneState& lane) {
  if (!std::exchange(lane.due, true)) due_.push_back(&lane);
}

void ClosureScheduler::send_dispatched() {
  // A lane that has closures always has calls waiting there for their results, if need be calls
  // that bring no closure. The list is taken first, since calls that end fill it anew.
  for (LaneState* lane : std::exchange(due_, {})) {
    lane->due = false;
    if (!lane->ready) continue;  // Workers puts back what was dispatched
    const std::size_t owed = lane->inflight.size() + lane->late.size();
    while (!lane->outbox.empty() || lane->calls < std::min(kCallsWaiting, owed))
      lane->tasks->spawn("closures", run_on(lane, next_message(*lane)));
  }
}

LaneMessage ClosureScheduler::next_message(LaneState& lane) {
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
  }
  const auto end = lane.outbox.begin() + static_cast<std::ptrdiff_t>(count);
  message.closures.assign(std::make_move_iterator(lane.outbox.begin()),
                          std::make_move_iterator(end));
  lane.outbox.erase(lane.outbox.begin(), end);
  return message;
}

// As the message is sent: it refers to states that may not be there after the next wait.
void ClosureScheduler::add_takes(LaneMessage& message) const {
  for (const auto& closure : message.closures)
    for (const TakeRecord& take : closure->takes) {
      auto [ordinal, state] = progress_.base(take);
      message.takes.push_back({take, ordinal, *state});
    }
}

// ---- lane -> result, or another run ----

rpc::Task<void> ClosureScheduler::run_on(LaneState* lane, LaneMessage message) {
  std::vector<LaneReply> replies;
  std::vector<std::uint64_t> sent;
  for (const auto& closure : message.closures) sent.push_back(closure->sequence);
  std::exception_ptr error;
  ++lane->calls;
  if (!sent.empty() && recorder_.on() && !co_await recorded()) co_return;
  try {
    add_takes(message);
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
  if (members_.pushes_held) session_.changed.notify_all();
  weigh(*lane);
  owe(*lane);
  pump();
}

// Nothing is sent of which a successor would not know: without its journal the run ends here.
rpc::Task<bool> ClosureScheduler::recorded() {
  try {
    co_await recorder_.written();
    co_return true;
  } catch (const CancelledError&) {
    throw;
  } catch (...) {
    queue_.fail_all(std::current_exception());
    session_.changed.notify_all();  // a start that waits for these closures ends with the error
  }
  co_return false;
}

void ClosureScheduler::answered(LaneState& lane, LaneReply reply) {
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
    succeeded(lane, closure, reply);
  } catch (...) {
    went_wrong(lane, closure, std::current_exception());
  }
}

// Its round was applied without it: what became of this run is of no interest, but that the lane
// has time again.
void ClosureScheduler::answered_late(LaneState& lane, const LaneReply& reply) {
  lane.window.answered(clock_.now());
  if (reply.error && error_parts(reply.error).code == Code::kCancelled)
    lane.client->connection().close();  // the lane is fenced
}

// The policy may hold the answer: a member of a round, for instance, ends with its round.
void ClosureScheduler::succeeded(LaneState& lane, const std::shared_ptr<Closure>& closure,
                                 LaneReply& reply) {
  lane.inflight.remove(closure->sequence);
  if (policy_.answered(closure, lane, reply) == ConsistencyPolicy::Answer::kHeld) return;
  policy_.ended(*closure);
  outcomes_.commit(*closure, lane, reply);
}

void ClosureScheduler::went_wrong(LaneState& lane, const std::shared_ptr<Closure>& closure,
                                  std::exception_ptr error) {
  ErrorParts parts = error_parts(error);
  // Workers finds the loss, fences the lane and only then queues what was in flight. To queue it
  // here would run it elsewhere while the lost lane can still push.
  if (!lane.ready || !lane.client || !lane.client->connection().connected()) return;
  policy_.lost(*closure);
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
      if (!Outcomes::tried_too_often(*closure)) {
        // A ps went away in the middle: it may have this closure's push while others do not, or the
        // other way round.
        torn(*closure);
        if (parts.code == Code::kUnavailable)
          outcomes_.run_again_later(closure);
        else
          queue_.put_back(closure);
        return;
      }
      [[fallthrough]];
    default: lane.inflight.remove(closure->sequence); fail(*closure, error);
  }
}

void ClosureScheduler::data_ended(std::shared_ptr<Closure> closure, const ErrorParts& end) {
  if (!policy_.waits_for_elements())
    return fail(*closure, std::make_exception_ptr(OutOfRangeError(end.message, end.task)));
  progress_.data_ended(*closure, *end.input_pipeline);
  queue_.put_back(std::move(closure));
}

void ClosureScheduler::fail(Closure& closure, std::exception_ptr error) {
  policy_.ended(closure);
  outcomes_.fail(closure, std::move(error));
}

// The worker knows a pipeline by its number; the user by the dataset's name.
std::exception_ptr ClosureScheduler::input_error(const ErrorParts& parts,
                                                 const LaneState& lane) const {
  const std::string& worker = lane.worker->name;
  std::uint64_t pipeline = *parts.input_pipeline;
  const std::string name = progress_.pipeline_name(pipeline);
  std::string message =
      str("pipeline \"", name, "\" could not be read on ", worker, ": ", parts.message);
  return std::make_exception_ptr(ClosureInputError(parts.code, message, worker, pipeline));
}

// From this moment on, not only once the closure runs again: a cut in between would hold half of
// it.
void ClosureScheduler::torn(Closure& closure) {
  if (closure.function->updates && closure.attempts > 0 && policy_.pushes_alone(closure))
    outcomes_.torn(closure);
}

}  // namespace cairn
