#include "coordinator/engine.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/base/random.h"

namespace cairn {
namespace {
// of the closures that go to a lane together; a larger one goes alone
constexpr std::size_t kMessageBytes = 1 << 20;
// at a lane: while one answers, results find the other
constexpr std::size_t kCallsWaiting = 2;
}  // namespace

Engine::Engine(Parts parts, EngineOptions options, std::shared_ptr<Waiting> waiting)
    : parts_(parts),
      options_(std::move(options)),
      stuck_watch_(options_.stuck_after),
      mailbox_(parts.reactor.mailbox()) {
  born_ = parts_.clock.now();
  // Not the clock alone: two coordinators of one millisecond must differ.
  session_ = options_.session;
  if (session_ == 0)
    session_ = random_key(static_cast<std::uint64_t>(parts_.clock.wall_microseconds()),
                          reinterpret_cast<std::uintptr_t>(this)) >>
                   1 |
               1;
  auto wake = [this, mailbox = mailbox_] {
    if (!pump_posted_.exchange(true)) mailbox->post([this] { pump(); });
  };
  queue_ = std::make_unique<ClosureQueue>(options_.queue_capacity, std::move(waiting), wake);
}

Engine::~Engine() { stop(); }

double Engine::seconds_since(TimePoint then) const {
  return std::chrono::duration<double>(parts_.clock.now() - then).count();
}

std::shared_ptr<const RegisteredFunction> Engine::register_function(
    std::shared_ptr<const ConcreteFunction> concrete, const std::string& name) {
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

std::shared_ptr<const PerWorkerDataset> Engine::add_dataset(
    std::string name, std::vector<std::vector<std::byte>> descriptions, ElementSpec spec,
    bool shared) {
  auto first = static_cast<std::uint64_t>(pipeline_book_.size());
  for (std::size_t i = 0; i < descriptions.size(); ++i)
    pipeline_book_.emplace_back(str(name, "/", i));
  skipped_rows_.resize(pipeline_book_.size());
  auto dataset = std::make_shared<const PerWorkerDataset>(
      std::move(name), first, std::move(descriptions), std::move(spec), shared);
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

// Neighbours go to one lane, as many as leave the others theirs: fewer messages, and memory is
// walked through in order.
void Engine::dispatch_queued() {
  const std::size_t share = 1 + queue_->size() / std::max<std::size_t>(1, lanes_.size());
  for (auto next = queue_->front(); next && may_go(*next); next = queue_->front()) {
    const auto free = free_.first();
    if (!free) return;
    Lane& lane = *lanes_[*free];
    for (std::size_t i = 0; i < share && has_room(lane) && next && may_go(*next);
         ++i, next = queue_->front())
      dispatch_next(lane);
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
  return !next.function->uses_variables ||
         (all_ps_ready() && !layout_busy_ && next.sequence < closures_below_);
}

void Engine::dispatch_next(Lane& lane) {
  auto closure = queue_->pop();
  if (!closure) return;
  if (closure->function->updates && closure->global_step < 0) {
    // in the queue's order, whichever lane is ready first
    closure->global_step = next_step_;
    next_step_ += closure->function->steps;
  }
  if (prepared(lane, *closure)) return dispatch(lane, std::move(closure));
  lane.preparing = closure;
  lane.tasks->spawn("prepare a lane", prepare(&lane, std::move(closure)));
}

bool Engine::has_room(const Lane& lane) const {
  return lane.ready && !lane.kept_out && !lane.preparing &&
         lane.inflight.size() < lane.window.size();
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
      closure->takes.push_back(
          pipeline_book_[pipeline].take(pipeline, static_cast<std::uint32_t>(counts[i])));
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
  // so that the lane works on one while the other travels
  const std::size_t most = (lane.window.size() + 1) / 2;
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
  message.closures.assign(std::make_move_iterator(lane.outbox.begin()),
                          std::make_move_iterator(end));
  lane.outbox.erase(lane.outbox.begin(), end);
  return message;
}

}  // namespace cairn
