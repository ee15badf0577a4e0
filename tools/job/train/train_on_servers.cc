#include "tools/job/train/train_on_servers.h"

#include <csignal>
#include <cstdlib>
#include <future>
#include <mutex>
#include <set>
#include <utility>

#include "coordinator/cluster/task_roles.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_host.h"
#include "core/base/log.h"
#include "core/base/processors.h"
#include "model/steps/cluster_steps.h"
#include "rpc/server/token.h"
#include "strategy/servers/hybrid_strategy.h"
#include "strategy/servers/ps_replicas.h"
#include "tools/job/spec/job_service.h"
#include "tools/job/spec/job_strategy.h"
#include "tools/job/spec/job_threads.h"
#include "tools/job/train/given_cluster.h"
#include "tools/job/train/run_journal.h"
#include "tools/launch/local_cluster.h"

namespace cairn::tools {
namespace {

// for tasks at the start, before they are named
constexpr Duration kSilentWait = std::chrono::seconds(2);

// Cuts a variable for as many shards as there are, which is known when the cluster is connected,
// and before there are variables.
class UpToShards final : public Partitioner {
 public:
  explicit UpToShards(std::int64_t min_shard_bytes) : min_shard_bytes_(min_shard_bytes) {}
  void set_shards(std::int64_t shards) { shards_ = shards; }
  std::vector<std::int64_t> operator()(const Shape& shape, DType dtype, int axis) const override {
    return (*MinSizePartitioner({.min_shard_bytes = min_shard_bytes_, .max_shards = shards_}))(
        shape, dtype, axis);
  }

 private:
  const std::int64_t min_shard_bytes_;
  std::int64_t shards_ = 1;
};

ParameterServerOptions strategy_options(const Job& job, std::shared_ptr<UpToShards> partitioner) {
  ParameterServerOptions options;
  options.partitioner = std::move(partitioner);
  options.seed = job.model.seed;
  options.transport = rpc::parse_transport(job.cluster.transport);
  options.engine.pipeline_depth = job.cluster.pipeline_depth;
  options.engine.send_window = job.cluster.send_window;
  options.engine.bfloat16_wire = job.cluster.wire == "bfloat16";
  options.engine.computing = {parse_arithmetic(job.cluster.arithmetic), job.cluster.deterministic};
  options.engine.recovery = job.cluster.ps_loss.recovery;
  options.engine.recovery.on_demand = job.cluster.ps_loss.restore_on_demand;
  options.consistency = consistency_of(job.strategy);
  options.replicas = static_cast<std::uint32_t>(job.cluster.ps_loss.replicas);
  options.engine.ps_wait = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(job.cluster.ps_loss.ps_wait_seconds));
  return options;
}

std::unique_ptr<ParameterServerStrategy> strategy_on_servers(const Job& job,
                                                             const ClusterResolver& resolver,
                                                             ParameterServerOptions options) {
  if (job.strategy.kind == "hybrid")
    return std::make_unique<HybridStrategy>(resolver, std::move(options));
  return std::make_unique<ParameterServerStrategy>(resolver, std::move(options));
}

// Says which tasks are missing at the start, and lets the wait be interrupted.
std::function<void(const std::vector<MissingTask>&)> watch_the_start(const RunHost& host,
                                                                     std::function<void()> look) {
  auto told = std::make_shared<std::set<std::string>>();
  return [host, look = std::move(look), told,
          began = system_clock().now()](const std::vector<MissingTask>& missing) {
    if (host.interrupted != 0)
      throw CancelledError("interrupted while it waited for tasks to appear: nothing was trained");
    if (look) look();
    if (system_clock().now() - began < kSilentWait) return;
    std::set<std::string> names;
    for (const MissingTask& task : missing) names.insert(task.name);
    if (names == *told) return;
    *told = names;
    for (const MissingTask& task : missing) host.output.say("waiting for " + task.text());
  };
}

// When and how closures without progress are reported.
void set_waits(const TrainRequest& request, EngineOptions& options) {
  options.waits.signal = SIGUSR1;
  if (request.stuck_after_seconds)
    options.waits.stuck_after = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(std::min(*request.stuck_after_seconds, 1e9)));
}

TrainingOutcome train(const PreparedJob& prepared, const FittedFeatures& features,
                      ParameterServerStrategy& strategy, const RunHost& host,
                      TrainerOptions options) {
  ClusterSteps steps(strategy, &host.interrupted);
  const ClusterCoordinator coordinator(strategy);
  options.gpus = [&coordinator] {
    const std::string status = coordinator.status_json();
    return status.empty() ? std::vector<GpuSeen>{} : gpus_in(parse_json(status, "the status"));
  };
  return Trainer(prepared.job, features, steps, std::move(options)).run();
}

// The run's own service is of its cluster. Another one knows the workers by its token and its id.
void join_service(JobService& service, LocalClusterOptions& cluster) {
  if (service.address.empty()) return;
  const char* id = std::getenv("CAIRN_CLUSTER_ID");
  if (service.cluster.empty())
    service.cluster = id != nullptr && *id != '\0' ? id : EngineOptions().cluster_id;
  cluster.token = rpc::token_of_environment();
  if (cluster.token.empty())
    throw InvalidArgumentError(
        str("the workers of this run are to read from the data service at ", service.address,
            ", which takes those that show its token: give that in CAIRN_TOKEN_FILE or "
            "CAIRN_TOKEN, or let --data-workers start a service for the run"));
}

// Settles the numbers of threads that the job leaves to the machine. Servers without such flags
// choose as choose_threads() does, except for a worker on a GPU.
void settle_threads(const TrainRequest& request, Job& job, LocalClusterOptions& options) {
  const JobCluster given = job.cluster;
  const int tasks = job.cluster.ps + job.cluster.workers + options.data_workers;
  const std::string resume =
      request.new_data ? ""
                       : find_resume(request, job, checkpoint_folder(request, job, request.dir));
  const LaneChoice choice =
      choose_threads(job, usable_processors(), static_cast<std::size_t>(tasks), resume);
  if (given.shards != kAutoThreads) options.shards = given.shards;
  options.lanes = choice == LaneChoice::kShare ? 0 : job.cluster.lanes;
  options.memory_limit = job.cluster.memory_limit;
  options.row_log = job.cluster.row_log;
}

// Records the numbers of threads that the servers report.
void note_threads(ParameterServerStrategy& strategy, UpToShards& partitioner, Job& job) {
  Engine& engine = strategy.host().engine();
  const std::int64_t shards = engine.registry().layout()->shard_count();
  partitioner.set_shards(shards);
  JobCluster& cluster = job.cluster;
  const int lanes = static_cast<int>(engine.lane_count()) / cluster.workers;
  const int shards_each = static_cast<int>(shards) / cluster.ps;
  if (std::exchange(cluster.lanes, lanes) == lanes && cluster.shards == shards_each) return;
  cluster.shards = shards_each;
  cluster.threads_why = "as the servers were started";
}

}  // namespace

TrainedJob train_on_local_cluster(const TrainRequest& request, const RunHost& host) {
  RunOutput& output = host.output;
  PreparedJob prepared = prepare(request, output);
  host.tell_prepared();
  JobCluster& wanted = prepared.job.cluster;
  LocalClusterOptions options;
  options.data_workers = request.overrides.data_workers.value_or(0);
  settle_threads(request, prepared.job, options);
  options.ps = wanted.ps;
  options.workers = wanted.workers;
  if (!wanted.device.empty()) options.device = wanted.device;
  options.transport = wanted.transport;
  options.dir = request.dir;
  join_service(prepared.job.data.service, options);
  for (const auto& kill : request.kills) options.supervisor.kills.push_back(parse_kill(kill));
  options.programs = host.programs;
  options.warn = [&output](const std::string& text) { output.say("warning: " + text); };
  std::promise<std::string> given_up;
  auto role_given_up = given_up.get_future();
  std::once_flag first;
  auto tell = [&](const RoleEvent& event) {
    if (event.kind != RoleEvent::Kind::kStarted || event.restarts > 0) log_warning(event.message);
    if (event.kind == RoleEvent::Kind::kGivenUp)
      std::call_once(first, [&] { given_up.set_value(event.message); });
  };
  LocalCluster cluster(options, tell);
  auto raise_if_given_up = [&] {
    if (role_given_up.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
      throw UnavailableError(role_given_up.get());
  };
  output.send_log_to(cluster.dir() + "/logs/chief-0.log");  // beside the roles' logs
  const std::string data =
      options.data_workers > 0 ? str(", ", options.data_workers, " data workers") : "";
  const std::string copies =
      wanted.ps_loss.replicas > 1 ? str(", each row on ", wanted.ps_loss.replicas, " ps") : "";
  output.say(str("cluster: ", wanted.ps, " ps and ", wanted.workers, " workers", data, copies,
                 ", logs in ", cluster.dir(), "/logs"));
  output.say("threads: " + threads_text(wanted));
  if (options.data_workers > 0) prepared.job.data.service.address = cluster.data_service();
  TrainerOptions trainer = trainer_options(
      request, prepared.job, checkpoint_folder(request, prepared.job, cluster.dir()), output);
  trainer.model_folder = model_folder(cluster.dir());
  trainer.graph_folder = graph_folder(cluster.dir());
  trainer.spare_folder = own_checkpoints(cluster.dir());
  trainer.reporter = reporter_in(cluster.dir(), request, prepared.job, trainer);
  const FittedFeatures features = features_of(prepared, trainer);
  const auto lock = claim(request, trainer);
  const TrainedJob place{.folder = cluster.dir(), .checkpoints = trainer.checkpoint_folder};
  trainer.on_progress = [&](double done) {
    cluster.supervisor().progress(done);
    raise_if_given_up();
  };
  cluster.start();
  const auto partitioner = std::make_shared<UpToShards>(wanted.partition_min_bytes);
  ParameterServerOptions strategy = strategy_options(prepared.job, partitioner);
  set_waits(request, strategy.engine);
  strategy.engine.cluster_id = cluster.cluster_id();
  strategy.engine.token = cluster.token();
  strategy.engine.start.on_wait = watch_the_start(host, raise_if_given_up);
  TrainingOutcome outcome;
  {
    const auto on_servers = strategy_on_servers(
        prepared.job, TFConfigClusterResolver(cluster.tf_config("chief", 0)), std::move(strategy));
    ClusterCoordinator(*on_servers).hold_folder(lock);
    note_threads(*on_servers, *partitioner, prepared.job);
    outcome = train(prepared, features, *on_servers, host, std::move(trainer));
    say_outcome(prepared, outcome, output);
  }
  std::map<std::string, int> restarts{{"ps", cluster.supervisor().restarts("ps")},
                                      {"worker", cluster.supervisor().restarts("worker")}};
  if (options.data_workers > 0)
    for (const char* role : {"dispatcher", "data_worker"})
      restarts[role] = cluster.supervisor().restarts(role);
  cluster.stop();
  return finish(prepared, request, outcome, restarts, place);
}

TrainedJob train_on_given_cluster(const TrainRequest& request, const RunHost& host) {
  RunOutput& output = host.output;
  PreparedJob prepared = prepare(request, output);
  host.tell_prepared();
  if (request.overrides.computing.device)
    throw InvalidArgumentError(
        str("--device ", *request.overrides.computing.device,
            ": the workers of this cluster run already, and "
            "each computes on what it was started with: give --device to cairn-worker"));
  TFConfigClusterResolver resolver;
  verify_parameter_server_cluster(resolver);
  verify_distinct_addresses(resolver.cluster_spec());
  prepared.job.cluster.ps = static_cast<int>(resolver.cluster_spec().task_count("ps"));
  prepared.job.cluster.workers = static_cast<int>(resolver.cluster_spec().task_count("worker"));
  verify_ps_replicas(place_of_replicas(request), prepared.job.cluster.ps_loss.replicas,
                     prepared.job.cluster.ps);
  const GivenClusterRun run(request.dir,
                            {resolver.cluster_spec(), request.cluster_id, request.token_file});
  output.say("the run's folder is " + run.dir());
  TrainerOptions trainer = trainer_options(
      request, prepared.job, checkpoint_folder(request, prepared.job, run.dir()), output);
  trainer.model_folder = model_folder(run.dir());
  trainer.graph_folder = graph_folder(run.dir());
  // With a journal, what the run is going on with is known once the cluster has this coordinator.
  const bool journal = wants_journal(request);
  FittedFeatures features;
  const auto settle_features = [&] {
    trainer.reporter = reporter_in(run.dir(), request, prepared.job, trainer);
    features = features_of(prepared, trainer);
  };
  if (!journal) settle_features();
  const auto partitioner = std::make_shared<UpToShards>(prepared.job.cluster.partition_min_bytes);
  ParameterServerOptions options = strategy_options(prepared.job, partitioner);
  if (!request.cluster_id.empty()) options.engine.cluster_id = request.cluster_id;
  if (!request.token_file.empty()) options.engine.token = rpc::read_token(request.token_file);
  set_waits(request, options.engine);
  options.engine.take_over = request.take_over;
  // The coordinator that is to be ended may have the folder until it is.
  const bool late = request.take_over || journal;
  auto lock = late ? nullptr : claim(request, trainer);
  options.engine.start.on_wait = watch_the_start(host, {});
  set_journal(request, host, resolver.cluster_spec(), options);
  const auto strategy = strategy_on_servers(prepared.job, resolver, std::move(options));
  if (journal) {
    trainer.goes_on = noted_run(*strategy);
    settle_features();
  }
  if (late) lock = claim_to_go_on(request, trainer);
  ClusterCoordinator(*strategy).hold_folder(std::move(lock));
  note_threads(*strategy, *partitioner, prepared.job);
  output.say("threads: " + threads_text(prepared.job.cluster));
  const TrainedJob place{.folder = run.dir(), .checkpoints = trainer.checkpoint_folder};
  const TrainingOutcome outcome = train(prepared, features, *strategy, host, std::move(trainer));
  say_outcome(prepared, outcome, output);
  return finish(prepared, request, outcome, {}, place);
}

}  // namespace cairn::tools
