// Lane: one of the closures' workplaces of a process. Owns functions, pipelines and the store of
// rows on ps; belongs to one loop. A function says which kind of store its closures use.
//
// A closure's way: it waits its turn (first come, first served), takes its elements, pulls,
// computes, pushes, answers. At most `pipeline_depth` closures are between the start of their pull
// and the end of their push, and no more than keep the lane busy (lookahead.h); one more than the
// depth has its elements ready. Only one computes at a time, and before it does the pulls of those
// behind it have left. Depth 1 is strict read-compute-write order.
//   Cancel  dropping a run() undoes nothing that was pushed; the closure's retry completes it.
//   Thread  its reactor's, apart from stats().
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/incarnation.h"
#include "core/exec/step.h"
#include "core/graph/graph.h"
#include "core/rows/layout.h"
#include "data/dataset/dataset.h"
#include "rpc/loop/gate.h"
#include "rpc/loop/task.h"
#include "worker/lane/admission.h"
#include "worker/lane/async_collective.h"
#include "worker/lane/closure_run.h"
#include "worker/lane/description_quota.h"
#include "worker/lane/group_membership.h"
#include "worker/lane/lookahead.h"
#include "worker/lane/pipelines.h"
#include "worker/rows/activity.h"
#include "worker/rows/remote_step.h"

namespace cairn::worker {

struct LaneOptions {
  std::string cluster;
  std::string token;
  std::uint32_t task = 0;          // the worker's index
  ProcessIncarnation incarnation;  // of the worker
  OpenOptions data;
  std::shared_ptr<Offload> offload;  // data.offload's object, if the lane is to keep it alive
  ShardLinkOptions link;
  AsyncCollective* collective = nullptr;  // outlives the lane; null: the lane's own group
  Device* device = nullptr;               // that it computes on, which outlives it; null: the CPU
  bool deterministic = false;  // as PlanOptions has it, whatever the coordinator asks for
};

struct LaneConfig {
  std::uint64_t session = 0;
  std::uint32_t lane = 0;
  std::uint32_t pipeline_depth = 2;
  RowEncoding encoding = RowEncoding::kRaw;
  LaneIncarnation incarnation;  // the incarnation that pushes carry
  Arithmetic products = Arithmetic::kFloat32;
  bool check_copies = false;  // results tell what a group's copies are
  bool deterministic = false;
};

// Read by other threads while the lane works: each number is right, together they may be a moment
// apart.
struct LaneStats {
  std::atomic<std::uint64_t> session{0};
  std::atomic<std::uint64_t> closures_done{0};
  std::atomic<std::uint64_t> closures_failed{0};
  std::atomic<std::uint64_t> closures_here{0};  // running or waiting
  std::atomic<std::uint64_t> functions{0};
  // more than the pipelines: elements were taken again, or out of their order
  std::atomic<std::uint64_t> iterators_opened{0};
  ActivityBoard activities;  // of the closures that have begun
};

class Lane {
 public:
  Lane(rpc::Reactor& reactor, rpc::Network& network, LaneOptions options);
  ~Lane();

  // Another session's functions, pipelines and layout are forgotten. Held pushes go on.
  // Errors  InvalidArgument: depth 0 or above kDepthMax, session 0.
  void configure(const LaneConfig& config);
  void set_layout(std::shared_ptr<const Layout> layout);
  // Functions of this kind find their variables there; those of parameter servers do from the
  // start.
  // `stores` outlives the lane.
  void add_stores(StoreKind kind, StepStores& stores);
  // `graph` is verified. A function may be registered again. `bytes`: of the description as it
  // came, which a lane keeps so many of. `kind`: what the strategy of its closures keeps variables
  // in.
  //   Errors  ResourceExhausted: more functions or pipelines, or larger ones, than a lane keeps.
  //           FailedPrecondition: this lane has no stores of that kind.
  void register_function(FunctionId id, Graph graph, std::size_t bytes = 0,
                         StoreKind kind = StoreKind::kParameterServers);
  void open_pipeline(PipelineId pipeline, Dataset dataset, std::size_t bytes = 0);

  // Errors the closure's own: of its operations, its dataset (OutOfRange at the end of the data) or
  // the shards;
  //         FailedPrecondition: not configured, or function, pipeline, variable or layout are not
  //         here yet; InvalidArgument: arguments that are not the function's; Cancelled: another
  //         session took over.
  // Once it has pushed it counts as pushing until it has ended, or, where there is a `caller`,
  // until told(caller). Until the coordinator has the failure, checkpoints count it as complete.
  rpc::Task<ClosureResult> run(ClosureRun closure, const void* caller = nullptr);
  void told(const void* caller) { pushes_.leave(caller); }
  // True: the function touches no variable and no iterator, and run_now() computes it inside the
  // call.
  bool immediate(FunctionId function) const;
  ClosureResult run_now(ClosureRun closure);

  // Resolves when no closure is between its first push and its end; new ones wait until
  // release_pushes() by the same holder.
  kj::Promise<void> hold_pushes(const void* holder = nullptr) { return pushes_.hold(holder); }
  void release_pushes(const void* holder = nullptr) { pushes_.release(holder); }

  const LaneStats& stats() const { return stats_; }
  rpc::Reactor& reactor() { return reactor_; }
  // The lanes that this one's closures all-reduce with, unless its options name another collective.
  LaneGroup& group() { return membership_.group(); }

  static constexpr std::uint32_t kDepthMax = 64;
  // Limits of the memory a coordinator may make a lane keep. Beyond them: ResourceExhausted.
  static constexpr std::size_t kFunctionsMax = 1 << 16, kPipelinesMax = 1 << 16;
  // of each kind together
  static constexpr std::size_t kDescriptionBytesMax = DescriptionQuota::kBytesMax;
  // here at once, running or waiting,
  static constexpr std::size_t kClosuresMax = 1 << 16;
  // and their arguments together
  static constexpr std::size_t kArgumentBytesMax = std::size_t{1} << 30;

 private:
  struct Function;
  struct Run;
  struct Held;  // a closure that is here
  std::shared_ptr<Function> function(FunctionId id) const;
  PlanOptions plan_options(std::int32_t replicas = 1) const {
    return {.products = config_.products,
            .deterministic = options_.deterministic || config_.deterministic,
            .replicas = replicas};
  }
  void make_ready(Function& function, const ClosureRun& closure) const;
  void check_arguments(const ClosureRun& closure, const Function& function) const;
  StepContext context(const ClosureRun& closure) const;
  void take_elements(const ClosureRun& closure, const Function& function, Run& run);
  void make_step(Run& run, const ClosureRun& closure);
  rpc::Task<void> drive(Run& run);
  Step::Next compute(Run& run);
  kj::Promise<void> all_reduce(const StepContext& context, const Step::AllReduce& begun);

  rpc::Reactor& reactor_;
  LaneOptions options_;
  LaneConfig config_;
  RemoteStore remote_;
  std::map<StoreKind, StepStores*> stores_;
  Pipelines pipelines_;
  std::map<FunctionId, std::shared_ptr<Function>> functions_;
  DescriptionQuota function_quota_{"function", kFunctionsMax};
  DescriptionQuota pipeline_quota_{"pipeline", kPipelinesMax};
  std::size_t closures_ = 0, argument_bytes_ = 0;  // of the closures that are here
  LaneStats stats_;
  rpc::Gate prepared_{1};  // have, or get, their elements
  rpc::Gate reading_{1};
  rpc::Gate at_work_{1};
  Lookahead lookahead_{1};   // how many may be at work
  Duration idle_before_{0};  // the loop's, at the end of the last turn of computing
  PushGate pushes_;
  ComputeTurns computing_;
  GroupMembership membership_;
};

}  // namespace cairn::worker
