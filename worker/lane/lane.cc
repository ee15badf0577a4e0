#include "worker/lane/lane.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/disk/trace.h"
#include "core/kernels/device.h"
#include "worker/rows/mirrored_step.h"

namespace cairn::worker {

// A graph, and the plan of it for the numbers that its variables have in its store; workspaces stay
// warm.
struct Lane::Function {
  FunctionId id = 0;
  Graph graph;
  std::vector<std::int64_t> taken;  // elements by iterator argument
  rpc::Company company = rpc::Company::kShared;
  bool immediate = false;
  StepStores* stores = nullptr;
  std::vector<VariableId> variables;  // their numbers in the store, for which `plan` is made
  std::int32_t replicas = 1;          // and so is this
  std::set<VariableId> mirrored;      // by a group that runs it
  std::shared_ptr<const Plan> plan;
  std::vector<std::unique_ptr<Workspace>> workspaces;  // those not in use

  std::unique_ptr<Workspace> workspace(Device& device) {
    if (workspaces.empty()) return std::make_unique<Workspace>(device);
    auto last = std::move(workspaces.back());
    workspaces.pop_back();
    return last;
  }
};

// One closure at work. Ended by its end or by cancellation, in which case its workspace is not used
// again.
struct Lane::Run {
  Run(Lane& owner, std::shared_ptr<Function> what, std::uint64_t sequence, const void* caller)
      : lane(owner),
        function(std::move(what)),
        slot(lane.stats_.activities.take()),
        pushes_as(caller == nullptr ? this : caller) {
    ++lane.stats_.closures_here;
    if (slot != nullptr) slot->begin(sequence, lane.reactor_.now());
  }
  // The order matters: the step's memory may lie in the store's, and the gate lets a checkpoint
  // begin as soon as no closure pushes.
  ~Run() {
    step.reset();
    store.reset();
    if (pushes_as == this) lane.pushes_.leave(this);
    lane.stats_.activities.give(slot);
    // A message of a push that was dropped may still refer to the workspace: it is not used again.
    if (finished && workspace && plan == function->plan)
      function->workspaces.push_back(std::move(workspace));
    --lane.stats_.closures_here;
    ++(finished ? lane.stats_.closures_done : lane.stats_.closures_failed);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void now(Activity activity) const {
    if (slot != nullptr) slot->set(activity, lane.reactor_.now());
  }

  Lane& lane;
  std::shared_ptr<Function> function;
  ActivitySlot* slot;
  const void* const pushes_as;  // its name at the gate
  std::vector<std::vector<Element>> elements;
  std::vector<Position> positions;
  std::shared_ptr<const Plan> plan;
  std::unique_ptr<Workspace> workspace;
  std::optional<Step> step;
  std::unique_ptr<StepStore> store;
  GroupMembership::Member* member = nullptr;  // null: of no group
  Duration held_back{0};                      // ready, and as many as may be were at work
  bool finished = false;
};

struct Lane::Held {
  Held(Lane& owner, const ClosureRun& closure) : lane(owner) {
    for (const Tensor& argument : closure.arguments)
      bytes += argument.dtype() == DType::kString ? 0 : argument.bytes();
    if (lane.closures_ >= kClosuresMax || lane.argument_bytes_ + bytes > kArgumentBytesMax)
      throw ResourceExhaustedError(str(
          "closure ", closure.sequence, ": this lane holds ", lane.closures_,
          " closures with arguments of ", lane.argument_bytes_, " bytes; at most ", kClosuresMax,
          " and ", kArgumentBytesMax, " bytes are taken: send fewer at once (send_window)"));
    ++lane.closures_;
    lane.argument_bytes_ += bytes;
  }
  ~Held() {
    --lane.closures_;
    lane.argument_bytes_ -= bytes;
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  Lane& lane;
  std::size_t bytes = 0;
};

Lane::Lane(rpc::Reactor& reactor, rpc::Network& network, LaneOptions options)
    : reactor_(reactor),
      options_(std::move(options)),
      remote_(reactor, network, options_.link),
      stores_{{StoreKind::kParameterServers, &remote_}},
      pipelines_(options_.data),
      computing_(reactor),
      membership_(reactor, network,
                  {.cluster = options_.cluster,
                   .token = options_.token,
                   .task = options_.task,
                   .incarnation = options_.incarnation,
                   .lane = static_cast<std::uint32_t>(options_.data.lane)}) {
  if (options_.collective == nullptr) options_.collective = &membership_.group();
  if (options_.device == nullptr) options_.device = &cpu_device();
}

Lane::~Lane() = default;

// Another session may use the same numbers for other functions, pipelines and variables, so nothing
// of the old one may stay. The same session again keeps them, as when its coordinator has only
// reconnected.
void Lane::configure(const LaneConfig& config) {
  if (config.session == 0)
    throw InvalidArgumentError("a lane is configured for a session, and 0 is none");
  if (config.pipeline_depth < 1 || config.pipeline_depth > kDepthMax)
    throw InvalidArgumentError(
        str("pipeline depth ", config.pipeline_depth, " is outside 1 to ", kDepthMax));
  if (config.session != config_.session) {
    functions_.clear();
    function_quota_.clear();
    pipelines_.clear();
    pipeline_quota_.clear();
    remote_.forget_layout();
    membership_.leave();
    stats_.functions = 0;
  }
  config_ = config;
  stats_.session = config.session;
  LaneIdentity identity;
  identity.hello.cluster = options_.cluster;
  identity.hello.token = options_.token;
  identity.hello.session = config.session;
  identity.hello.role = rpc::Role::kWorker;
  identity.hello.task = options_.task;
  identity.hello.incarnation = options_.incarnation;
  identity.encoding = config.encoding;
  remote_.identify(std::move(identity));
  prepared_.set_limit(config.pipeline_depth + 1);
  lookahead_ = Lookahead(config.pipeline_depth);
  at_work_.set_limit(lookahead_.limit());
  pushes_.release_all();
}

void Lane::set_layout(std::shared_ptr<const Layout> layout) {
  membership_.forget_copies();
  remote_.set_layout(std::move(layout));
}

void Lane::add_stores(StoreKind kind, StepStores& stores) { stores_[kind] = &stores; }

void Lane::register_function(FunctionId id, Graph graph, std::size_t bytes, StoreKind kind) {
  const auto stores = stores_.find(kind);
  if (stores == stores_.end())
    throw FailedPreconditionError(str("function ", id, " keeps its variables in a store of kind ",
                                      static_cast<int>(kind), ", which this lane does not have"));
  function_quota_.book(id, bytes);
  auto function = std::make_shared<Function>();
  function->id = id;
  function->graph = std::move(graph);
  function->stores = stores->second;
  function->taken = function->graph.elements_taken();
  function->company = function->graph.assigns() ? rpc::Company::kAlone : rpc::Company::kShared;
  function->immediate = function->graph.variables.empty() && function->graph.iterators.empty();
  if (function->immediate) function->plan = make_plan(function->graph, {}, plan_options());
  functions_[id] = std::move(function);
  stats_.functions = functions_.size();
}

void Lane::open_pipeline(PipelineId pipeline, Dataset dataset, std::size_t bytes) {
  pipeline_quota_.book(pipeline, bytes);
  pipelines_.define(pipeline, std::move(dataset));
}

std::shared_ptr<Lane::Function> Lane::function(FunctionId id) const {
  auto found = functions_.find(id);
  if (found == functions_.end())
    throw FailedPreconditionError(str("function ", id, " has not been registered on this lane"));
  return found->second;
}

bool Lane::immediate(FunctionId id) const {
  auto found = functions_.find(id);
  return found != functions_.end() && found->second->immediate;
}

// A plan stays while its variables keep their numbers in the store, and its group its size.
void Lane::make_ready(Function& function, const ClosureRun& closure) const {
  const std::int32_t replicas = membership_.replicas_of(closure);
  const bool fits = function.plan && function.replicas == replicas;
  if (fits && function.graph.variables.empty()) return;
  std::vector<VariableId> variables = function.stores->resolve(function.graph, closure.sent_layout);
  if (fits && variables == function.variables) return;
  function.plan = make_plan(function.graph, variables, plan_options(replicas));
  function.mirrored = mirrored_variables(function.graph, variables);
  function.replicas = replicas;
  function.variables = std::move(variables);
  function.workspaces.clear();
}

void Lane::check_arguments(const ClosureRun& closure, const Function& function) const {
  if (config_.session == 0) throw FailedPreconditionError("this lane has not been configured");
  const auto& wanted = function.graph.arguments;
  if (closure.arguments.size() != wanted.size())
    throw InvalidArgumentError(str("function ", function.id, " takes ", wanted.size(),
                                   " arguments, the closure brings ", closure.arguments.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Tensor& given = closure.arguments[i];
    if (given.dtype() != wanted[i].dtype || !wanted[i].shape.admits(given.shape()))
      throw InvalidArgumentError(str("argument ", i, " of function ", function.id, " is ",
                                     wanted[i].to_string(), ", the closure brings ",
                                     given.type().to_string()));
  }
  if (closure.takes.size() != function.taken.size())
    throw InvalidArgumentError(str("function ", function.id, " reads ", function.taken.size(),
                                   " iterators, the closure names ", closure.takes.size()));
  for (std::size_t i = 0; i < closure.takes.size(); ++i)
    if (static_cast<std::int64_t>(closure.takes[i].count) != function.taken[i])
      throw InvalidArgumentError(str("function ", function.id, " takes ", function.taken[i],
                                     " elements of iterator ", i, ", the closure names ",
                                     closure.takes[i].count));
}

// The context travels with every call, and by it a shard fences what is of another session or of a
// connection that was replaced.
StepContext Lane::context(const ClosureRun& closure) const {
  StepContext step;
  step.session = config_.session;
  // the layout by which it was sent, though the lane may know a newer one
  step.sent_layout = closure.sent_layout;
  step.closure = closure.sequence;
  step.incarnation = config_.incarnation;
  step.global_step = closure.global_step;
  step.round = closure.round;
  step.replica = closure.member;
  step.replicas = membership_.replicas_of(closure);
  return step;
}

// A pipeline and a function are registered apart, so only this ties their columns together.
void Lane::take_elements(const ClosureRun& closure, const Function& function, Run& run) {
  const TraceSpan span("read data", closure.sequence);
  for (std::size_t i = 0; i < closure.takes.size(); ++i) {
    Taken taken = pipelines_.take(closure.takes[i]);
    for (const Element& element : taken.elements)
      if (element.size() != function.graph.iterators[i].columns.size())
        throw InvalidArgumentError(str("pipeline ", closure.takes[i].pipeline, " yields ",
                                       element.size(), " columns, function ", function.id,
                                       " wants ", function.graph.iterators[i].columns.size()));
    run.elements.push_back(std::move(taken.elements));
    run.positions.push_back(std::move(taken.position));
  }
  stats_.iterators_opened = pipelines_.opened();
}

ClosureResult Lane::run_now(ClosureRun closure) {
  auto what = function(closure.function);
  check_arguments(closure, *what);
  auto workspace = what->workspace(*options_.device);
  ClosureResult result;
  try {
    result.outputs = run_without_variables(what->plan, *workspace, context(closure),
                                           {std::move(closure.arguments), {}});
  } catch (...) {
    ++stats_.closures_failed;
    throw;
  }
  what->workspaces.push_back(std::move(workspace));
  ++stats_.closures_done;
  return result;
}

void Lane::make_step(Run& run, const ClosureRun& closure) {
  run.plan = run.function->plan;
  run.workspace = run.function->workspace(*options_.device);
  run.store = closure.group == 0 ? run.function->stores->open(run.slot)
                                 : membership_.open(remote_, run.slot, closure, *run.member,
                                                    run.function->mirrored, config_.check_copies);
  run.step.emplace(run.plan, *run.workspace, *run.store, context(closure),
                   RunInputs{closure.arguments, std::move(run.elements)});
}

rpc::Task<void> Lane::drive(Run& run) {
  const StepContext& context = run.step->context();
  bool pushing = false;
  std::vector<kj::Promise<void>> reductions;  // by ticket
  std::size_t awaited = 0;
  for (bool first = true;; first = false) {
    // The part before the first pull runs at once, so that the pull leaves before others compute.
    // At depth 1 there is no other closure whose pull could go first.
    if (!first && config_.pipeline_depth > 1 && run.step->computes_next()) {
      run.now(Activity::kWaitingToCompute);
      co_await computing_.turn();
    }
    const Step::Next needed = compute(run);
    if (const auto* pull = std::get_if<Step::Pull>(&needed)) {
      co_await run.store->pull(context, pull->reads);
    } else if (const auto* push = std::get_if<Step::Push>(&needed)) {
      // Only the first push of a closure waits for a checkpoint's cut: once it has begun to push,
      // the cut waits for it, so that every closure is in a checkpoint whole or not at all.
      if (!std::exchange(pushing, true)) {
        if (pushes_.held()) run.now(Activity::kHeld);
        co_await pushes_.pass(run.pushes_as);
      }
      if (run.member != nullptr && !run.step->computes_next()) run.member->pushes_last();
      co_await run.store->push(context, push->updates);
    } else if (const auto* begun = std::get_if<Step::AllReduce>(&needed)) {
      if (run.member != nullptr) co_await run.member->turn();
      reductions.push_back(all_reduce(context, *begun));
    } else if (const auto* await = std::get_if<Step::Await>(&needed)) {
      for (const auto end = static_cast<std::size_t>(await->ticket) + 1; awaited < end; ++awaited)
        co_await kj::mv(reductions[awaited]);
    } else {
      co_return;
    }
  }
}

// Under way at once, not when it is awaited.
kj::Promise<void> Lane::all_reduce(const StepContext& context, const Step::AllReduce& begun) {
  if (options_.collective == nullptr)
    throw FailedPreconditionError("the function all-reduces, and this lane has no collective");
  return options_.collective
      ->all_reduce(context, {begun.reductions.begin(), begun.reductions.end()})
      .eagerlyEvaluate(nullptr);
}

// Reports to the lookahead how long the loop was idle before this while the closure stood ready,
// held back only by the limit of active closures: one more of them would have used that time.
Step::Next Lane::compute(Run& run) {
  run.now(Activity::kComputing);
  const Duration idled = std::min(reactor_.idle() - idle_before_, run.held_back),
                 began = reactor_.now();
  auto take_time = kj::defer([&] {
    lookahead_.took(idled, reactor_.now() - began);
    idle_before_ = reactor_.idle();
    at_work_.set_limit(lookahead_.limit());
  });
  return run.step->next();
}

rpc::Task<ClosureResult> Lane::run(ClosureRun closure, const void* caller) {
  // Every wait below may bring another configuration; what was begun under the old one ends.
  const LaneConfig begun = config_;
  auto what = function(closure.function);
  check_arguments(closure, *what);
  if (what->immediate) co_return run_now(std::move(closure));
  GroupMembership::Member in_group(membership_, closure);
  // Three gates, each first come first served: a few closures have their elements ready, one reads
  // at a time, and as many as the lookahead says are between their first pull and their last push.
  const Held held(*this, closure);
  const TraceSpan span("closure at its lane", closure.sequence, TraceSpan::Kind::kOverlapping);
  rpc::Gate::Pass ready = co_await prepared_.enter();
  Run run(*this, what, closure.sequence, caller);
  // an iterator that is overtaken has to be opened again
  rpc::Gate::Pass reading = co_await reading_.enter();
  // reading may take long: let pulls leave first
  if (config_.pipeline_depth > 1 && !closure.takes.empty()) co_await reactor_.yield();
  run.now(Activity::kReading);
  take_elements(closure, *what, run);
  reading.leave();
  run.now(Activity::kWaitingForOthers);
  const Duration from = reactor_.now();
  rpc::Gate::Pass work = co_await at_work_.enter(1, what->company);
  run.held_back = reactor_.now() - from;
  if (closure.group != 0) run.member = &in_group;
  if (config_.session != begun.session || config_.incarnation != begun.incarnation)
    throw CancelledError("another session, or another connection, has taken over this lane");
  make_ready(*what, closure);
  make_step(run, closure);
  co_await drive(run);
  ClosureResult result;
  result.outputs = run.step->outputs();
  result.positions = std::move(run.positions);
  result.staleness = run.store->staleness();
  result.updated = run.store->updated();
  result.copies = run.store->fingerprint_of_copies();
  run.finished = true;
  in_group.ended_well();
  co_return result;
}

}  // namespace cairn::worker
