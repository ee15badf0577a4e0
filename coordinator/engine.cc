#include "coordinator/engine.h"

#include <algorithm>

#include "coordinator/engine_restored.h"
#include "coordinator/reply_wire.h"
#include "core/log.h"
#include "core/random.h"

namespace cairn {
namespace {
// A closure that is aborted again and again is our bug or the user's, not a recovery.
constexpr std::uint32_t kAttemptsMax = 1000;
constexpr Duration kRetryPause = std::chrono::milliseconds(20);
constexpr std::size_t kMessageBytes = 1 << 20;  // of the closures that go to a lane together; a larger one goes alone
constexpr std::size_t kCallsWaiting = 2;        // at a lane: while one answers, results find the other
}  // namespace

Engine::Engine(Parts parts, EngineOptions options, std::shared_ptr<Waiting> waiting)
    : parts_(parts), options_(std::move(options)), stuck_watch_(options_.stuck_after), mailbox_(parts.reactor.mailbox()) {
  born_ = parts_.clock.now();
  // Not the clock alone: two coordinators of one millisecond must differ.
  session_ = options_.session;
  if (session_ == 0) session_ = random_key(static_cast<std::uint64_t>(parts_.clock.wall_microseconds()), reinterpret_cast<std::uintptr_t>(this)) >> 1 | 1;
  auto wake = [this, mailbox = mailbox_] {
    if (!pump_posted_.exchange(true)) mailbox->post([this] { pump(); });
  };
  queue_ = std::make_unique<ClosureQueue>(options_.queue_capacity, std::move(waiting), wake);
}

Engine::~Engine() { stop(); }

double Engine::seconds_since(TimePoint then) const { return std::chrono::duration<double>(parts_.clock.now() - then).count(); }

std::shared_ptr<const RegisteredFunction> Engine::register_function(std::shared_ptr<const ConcreteFunction> concrete, const std::string& name) {
  std::string key(reinterpret_cast<const char*>(concrete->hash.data()), concrete->hash.size());
  std::lock_guard hold(shared_mutex_);
  auto& entry = functions_[key];
  if (!entry) {
    auto made = std::make_shared<RegisteredFunction>();
    made->id = static_cast<std::uint32_t>(functions_.size() - 1);
    made->name = name;
    made->updates = concrete->graph.updates_variables();
    made->uses_variables = !concrete->graph.variables.empty();
    made->elements = concrete->graph.elements_taken();
    if (!made->elements.empty()) made->steps = std::max<std::int64_t>(1, made->elements.front());
    made->concrete = std::move(concrete);
    entry = std::move(made);
  }
  return entry;
}

std::shared_ptr<const PerWorkerDataset> Engine::add_dataset(std::string name, std::vector<std::vector<std::byte>> descriptions, ElementSpec spec, bool shared) {
  auto first = static_cast<std::uint64_t>(pipeline_book_.size());
  for (std::size_t i = 0; i < descriptions.size(); ++i) pipeline_book_.emplace_back(str(name, "/", i));
  skipped_rows_.resize(pipeline_book_.size());
  auto dataset = std::make_shared<const PerWorkerDataset>(std::move(name), first, std::move(descriptions), std::move(spec), shared);
  datasets_.push_back(dataset);
  restore_positions();
  return dataset;
}

// ---- dispatch ----

// All that goes to a lane now goes in one message.
void Engine::pump() {
  pump_posted_ = false;
  if (!started_) return;
  for (const auto& closure : queue_->take_cancelled()) {
    spend_elements(*closure);
    not_torn(*closure);
  }
  dispatch_queued();
  send_dispatched();
  if (announcement_due()) announce_due_.notify_all();
}

// Neighbours go to one lane, as many as leave the others theirs: fewer messages, and memory is walked through in order.
void Engine::dispatch_queued() {
  const std::size_t share = 1 + queue_->size() / std::max<std::size_t>(1, lanes_.size());
  for (auto next = queue_->front(); next && may_go(*next); next = queue_->front()) {
    const auto free = free_.first();
    if (!free) return;
    Lane& lane = *lanes_[*free];
    for (std::size_t i = 0; i < share && has_room(lane) && next && may_go(*next); ++i, next = queue_->front()) dispatch_next(lane);
    weigh(lane);
  }
}

bool Engine::may_go(const Closure& next) {
  if (resync_ || next.layout_version > synced_version_) {
    sync_layout();
    return false;
  }
  wanted_below_ = std::max(wanted_below_, next.sequence + 1);
  // Else ps_loop, sync_layout and announce_loop pump again.
  return !next.function->uses_variables || (all_ps_ready() && !layout_busy_ && next.sequence < closures_below_);
}

void Engine::dispatch_next(Lane& lane) {
  auto closure = queue_->pop();
  if (!closure) return;
  if (closure->function->updates && closure->global_step < 0) {  // in the queue's order, whichever lane is ready first
    closure->global_step = next_step_;
    next_step_ += closure->function->steps;
  }
  if (prepared(lane, *closure)) return dispatch(lane, std::move(closure));
  lane.preparing = closure;
  lane.tasks->spawn("prepare a lane", prepare(&lane, std::move(closure)));
}

bool Engine::has_room(const Lane& lane) const {
  return lane.ready && !lane.kept_out && !lane.preparing && lane.inflight.size() < lane.window.size();
}

// After any change of what decides whether a lane is sent closures, and how soon.
void Engine::weigh(Lane& lane) {
  if (has_room(lane))
    free_.put(lane.number, lane.inflight.size());
  else
    free_.remove(lane.number);
}

bool Engine::prepared(const Lane& lane, const Closure& closure) const {
  const auto& function = *closure.function;
  if (function.id >= lane.functions.size() || !lane.functions[function.id]) return false;
  if (function.uses_variables && lane.layout_version != synced_version_) return false;
  for (const auto& dataset : closure.datasets) {
    std::uint64_t pipeline = dataset->pipeline(lane.number);
    if (!lane.pipelines.contains(pipeline)) return false;
  }
  for (const auto& take : closure.takes)
    if (!lane.pipelines.contains(take.pipeline)) return false;
  return true;
}

rpc::Task<void> Engine::prepare(Lane* lane, std::shared_ptr<Closure> closure) {
  std::exception_ptr error;
  try {
    co_await send_preparations(lane, closure);
  } catch (...) {
    error = std::current_exception();
  }
  lane->preparing = nullptr;
  if (error) {
    lane->inflight.add(closure);
    went_wrong(*lane, closure, error);
  } else {
    dispatch(*lane, closure);
  }
  weigh(*lane);
  pump();
}

rpc::Task<void> Engine::send_preparations(Lane* lane, std::shared_ptr<Closure> closure) {
  auto function = closure->function;
  if (function->uses_variables && lane->layout_version != synced_version_) {
    auto layout = synced_;
    co_await lane->client->set_layout(layout);
    lane->layout_version = layout->version;
  }
  if (function->id >= lane->functions.size()) lane->functions.resize(function->id + 1);
  if (!lane->functions[function->id]) {
    co_await lane->client->register_function(function->id, function->concrete);
    lane->functions[function->id] = true;
  }
  std::vector<std::pair<std::uint64_t, const PerWorkerDataset*>> wanted;
  for (std::size_t i = 0; i < closure->datasets.size(); ++i) {
    const PerWorkerDataset* dataset = closure->datasets[i].get();
    wanted.emplace_back(dataset->pipeline(lane->number), dataset);
    if (i < closure->takes.size()) wanted.emplace_back(closure->takes[i].pipeline, dataset);
  }
  for (auto [pipeline, dataset] : wanted) {
    if (lane->pipelines.contains(pipeline)) continue;
    co_await lane->client->open_pipeline(pipeline, dataset->description(pipeline));
    lane->pipelines[pipeline] = true;
  }
}

void Engine::dispatch(Lane& lane, std::shared_ptr<Closure> closure) {
  if (closure->attempts == 0) {
    const auto& counts = closure->function->elements;
    for (std::size_t i = 0; i < closure->datasets.size(); ++i) {
      std::uint64_t pipeline = closure->datasets[i]->pipeline(lane.number);
      closure->takes.push_back(pipeline_book_[pipeline].take(pipeline, static_cast<std::uint32_t>(counts[i])));
    }
  }
  ++closure->attempts;
  closure->sent_version = lane.layout_version;
  lane.inflight.add(closure);
  lane.outbox.push_back(std::move(closure));
  if (lane.inflight.size() == 1) lane.window.began(parts_.clock.now());
  owe(lane);
}

void Engine::owe(Lane& lane) {
  if (!std::exchange(lane.due, true)) due_.push_back(&lane);
}

void Engine::send_dispatched() {
  for (Lane* lane : std::exchange(due_, {})) {
    lane->due = false;
    if (!lane->ready) continue;  // worker_loop puts back what was dispatched
    while (!lane->outbox.empty() || lane->calls < std::min(kCallsWaiting, lane->inflight.size()))
      lane->tasks->spawn("closures", run_on(lane, next_message(*lane)));
  }
}

LaneMessage Engine::next_message(Lane& lane) {
  LaneMessage message{.layout_version = lane.layout_version, .lane_number = lane.number};
  const std::size_t most = (lane.window.size() + 1) / 2;  // so that the lane works on one while the other travels
  std::size_t count = 0;
  for (; count < std::min(most, lane.outbox.size()); ++count) {
    Closure& closure = *lane.outbox[count];
    const std::size_t bytes = LaneClient::message_bytes(closure, lane.number);
    if (count > 0 && message.bytes + bytes > kMessageBytes) break;
    message.bytes += bytes;
    for (const TakeRecord& take : closure.takes) {
      auto [ordinal, state] = pipeline_book_[take.pipeline].base(take.ordinal);
      message.takes.push_back({take, ordinal, *state});
    }
  }
  const auto end = lane.outbox.begin() + static_cast<std::ptrdiff_t>(count);
  message.closures.assign(std::make_move_iterator(lane.outbox.begin()), std::make_move_iterator(end));
  lane.outbox.erase(lane.outbox.begin(), end);
  return message;
}

rpc::Task<void> Engine::run_on(Lane* lane, LaneMessage message) {
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
  const std::size_t answers = replies.size();
  if (error) {  // none of these has begun
    if (sent.empty()) lane->client->connection().close();
    for (const std::uint64_t sequence : sent) replies.push_back({.sequence = sequence, .error = error});
  }
  for (LaneReply& reply : replies) answered(*lane, std::move(reply));
  lane->answers += answers;
  if (holding_) changed();
  weigh(*lane);
  owe(*lane);
  pump();
}

void Engine::answered(Lane& lane, LaneReply reply) {
  const std::shared_ptr<Closure> closure = lane.inflight.find(reply.sequence);
  if (!closure) {
    log_error(lane.worker->name, " answers closure ", reply.sequence, ", which it does not have; its connection is ended");
    return lane.client->connection().close();
  }
  lane.window.answered(parts_.clock.now());
  try {
    if (reply.error) std::rethrow_exception(reply.error);
    verify_reply(reply, closure->function->concrete->graph, closure->takes.size());
    succeeded(lane, closure, std::move(reply));
  } catch (...) {
    went_wrong(lane, closure, std::current_exception());
  }
}

void Engine::succeeded(Lane& lane, const std::shared_ptr<Closure>& closure, LaneReply reply) {
  lane.inflight.remove(closure->sequence);
  for (std::size_t i = 0; i < closure->takes.size(); ++i) {
    const TakeRecord& take = closure->takes[i];
    bool known = i < reply.states.size();
    if (known && reply.states[i].skipped > skipped_rows_[take.pipeline]) count_skipped(take.pipeline, reply.states[i].skipped);
    pipeline_book_[take.pipeline].commit(take, known ? reply.states[i].ordinal : 0,
                                         known ? std::move(reply.states[i].bytes) : std::vector<std::byte>{});
  }
  not_torn(*closure);
  if (closure->function->updates) count_update(lane, *closure, reply);
  queue_->finish(*closure, std::move(reply.outputs));
}

void Engine::count_skipped(std::uint64_t pipeline, std::uint64_t skipped) {
  std::lock_guard hold(shared_mutex_);
  stats_.skipped_rows += skipped - skipped_rows_[pipeline];
  skipped_rows_[pipeline] = skipped;
}

void Engine::count_update(Lane& lane, const Closure& closure, const LaneReply& reply) {
  ++committed_;
  global_step_ += closure.function->steps;
  count_late_loss(closure);
  {
    std::lock_guard hold(shared_mutex_);
    ++stats_.updates;
    stats_.global_step = global_step_;
    stats_.staleness.add(reply.staleness);
    stats_.staleness_max = stats_.staleness.max();
    stats_.staleness_mean = stats_.staleness.mean();
    auto first_push = [&](std::size_t& loss) {
      if (loss == kNoLoss) return;
      LossReport& report = stats_.losses[loss];
      report.first_push_after_seconds = uptime() - report.at_seconds;
      loss = kNoLoss;
    };
    if (lane.worker->ready) first_push(lane.worker->open_loss);
    for (auto& ps : ps_)
      if (ps->ready) first_push(ps->open_loss);
  }
  save_if_due();
}

void Engine::went_wrong(Lane& lane, const std::shared_ptr<Closure>& closure, std::exception_ptr error) {
  ErrorParts parts = error_parts(error);
  if (!lane.ready || !lane.client || !lane.client->connection().connected()) return;  // worker_loop puts back what was in flight
  if (parts.input_pipeline) {  // whatever its code: the data's fault, not the worker's
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
        torn(*closure);  // a ps went away in the middle: it may have this closure's push, or another may
        if (parts.code == Code::kUnavailable)
          tasks_.spawn("run a closure again", run_again_later(closure));
        else
          queue_->put_back(closure);
        return;
      }
      [[fallthrough]];
    default:
      lane.inflight.remove(closure->sequence);
      fail(*closure, error);
  }
}

void Engine::fail(Closure& closure, std::exception_ptr error) {
  spend_elements(closure);
  not_torn(closure);
  queue_->fail(closure, error);
}

// The worker knows a pipeline by its number; the user by the dataset's name.
std::exception_ptr Engine::input_error(const ErrorParts& parts, const Lane& lane) const {
  const std::string& worker = lane.worker->name;
  std::uint64_t pipeline = *parts.input_pipeline;
  std::string name = pipeline < pipeline_book_.size() ? pipeline_book_[pipeline].name() : std::to_string(pipeline);
  std::string message = str("pipeline \"", name, "\" could not be read on ", worker, ": ", parts.message);
  return std::make_exception_ptr(ClosureInputError(parts.code, message, worker, pipeline));
}

// Long enough for the engine to see the loss that the worker saw first.
rpc::Task<void> Engine::run_again_later(std::shared_ptr<Closure> closure) {
  co_await parts_.reactor.sleep(kRetryPause);
  queue_->put_back(std::move(closure));
}

void Engine::spend_elements(const Closure& closure) {
  for (const TakeRecord& take : closure.takes) pipeline_book_[take.pipeline].commit(take, 0, {});
}

// From this moment on, not only once it runs again: a cut in between would hold half of it.
void Engine::torn(Closure& closure) {
  if (!closure.function->updates || closure.attempts == 0 || std::exchange(closure.maybe_torn, true)) return;
  ++torn_;
}

void Engine::not_torn(Closure& closure) {
  if (!std::exchange(closure.maybe_torn, false)) return;
  --torn_;
  changed();
}

}  // namespace cairn
