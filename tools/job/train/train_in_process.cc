#include "tools/job/train/train_in_process.h"

#include <cstdlib>

#include "coordinator/cluster/task_roles.h"
#include "core/disk/disk.h"
#include "core/kernels/chosen_devices.h"
#include "model/steps/local_steps.h"
#include "rpc/server/token.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "strategy/base/one_device_strategy.h"
#include "strategy/in_sync/central_storage_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "strategy/in_sync/multi_worker_mirrored_strategy.h"
#include "tools/job/spec/job_strategy.h"
#include "tools/job/train/given_cluster.h"

namespace cairn::tools {
namespace {

// The devices of a job that names some. If one is missing, the error says which key named it.
ChosenDevices chosen_by(const Job& job) {
  try {
    return chosen_devices(job.cluster.device);
  } catch (const NotFoundError& error) {
    throw NotFoundError(str("--device, or cluster.device of the job, is \"", job.cluster.device,
                            "\": ", error.what()));
  }
}

std::string computes_on(const Job& job) {
  return job.cluster.device.empty() ? "" : str("; it computes on ", chosen_by(job).text);
}

void compute_as(const Job& job, LocalStrategy& strategy) {
  strategy.set_products(parse_arithmetic(job.cluster.arithmetic));
  if (job.cluster.deterministic) strategy.set_deterministic();
  strategy.set_device_cache(parse_device_cache(job.cluster.device_cache));
}

std::unique_ptr<LocalStrategy> strategy_of_kind(const Job& job) {
  const std::uint64_t seed = job.model.seed;
  const std::vector<std::string> devices = replica_devices(job);
  if (job.strategy.kind == "mirrored")
    return std::make_unique<MirroredStrategy>(devices, InSyncOptions{.seed = seed});
  if (job.strategy.kind == "central_storage")
    return std::make_unique<CentralStorageStrategy>(devices, "", InSyncOptions{.seed = seed});
  return std::make_unique<OneDeviceStrategy>(devices.front(), seed);
}

std::unique_ptr<LocalStrategy> make_strategy(const Job& job) {
  auto made = strategy_of_kind(job);
  compute_as(job, *made);
  return made;
}

}  // namespace

// Workers of one machine begin at different GPUs, where there are several.
std::vector<std::string> replica_devices(const Job& job, std::size_t worker) {
  const bool one = job.strategy.kind == "one_device";
  const auto replicas = static_cast<std::size_t>(one ? 1 : job.strategy.replicas_of_process());
  std::vector<Device*> chosen{&cpu_device()};
  if (!job.cluster.device.empty()) chosen = chosen_by(job).devices;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < replicas; ++i) {
    const Device* device = chosen[(worker * replicas + i) % chosen.size()];
    names.push_back(device == &cpu_device() ? str("cpu:", i) : std::string(device->name()));
  }
  return names;
}

TrainedJob train_in_process(const TrainRequest& request, const RunHost& host) {
  RunOutput& output = host.output;
  const PreparedJob prepared = prepare(request, output);
  const Job& job = prepared.job;
  if (!request.kills.empty())
    throw InvalidArgumentError(str("--kill ", request.kills[0], ": ", strategy_text(job),
                                   ", so there is no ps or worker to kill; train under "
                                   "parameter_server, hybrid or multi_worker_mirrored"));
  host.tell_prepared();
  const GivenClusterRun run(request.dir, {});
  output.say(str(strategy_text(job), computes_on(job), "; the run's folder is ", run.dir()));
  TrainerOptions options =
      trainer_options(request, job, checkpoint_folder(request, job, run.dir()), output);
  options.model_folder = model_folder(run.dir());
  options.graph_folder = graph_folder(run.dir());
  options.spare_folder = own_checkpoints(run.dir());
  options.reporter = reporter_in(run.dir(), request, job, options);
  const FittedFeatures features = features_of(prepared, options);
  options.folder_lock = claim(request, options);
  options.gpus = [names = replica_devices(job)] { return gpus_here(names); };
  const auto strategy = make_strategy(job);
  if (const auto* in_sync = dynamic_cast<const InSyncStrategy*>(strategy.get());
      in_sync != nullptr && !in_sync->sums_text().empty())
    output.say(in_sync->sums_text());
  LocalSteps steps(*strategy, &host.interrupted);
  const TrainedJob place{.folder = run.dir(), .checkpoints = options.checkpoint_folder};
  const TrainingOutcome outcome = Trainer(job, features, steps, std::move(options)).run();
  say_outcome(prepared, outcome, output);
  return finish(prepared, request, outcome, {}, place);
}

// ---- a group of processes ----

namespace {

bool started_again() {
  const char* restarts = std::getenv("CAIRN_RESTARTS");
  return restarts != nullptr && std::atoi(restarts) > 0;
}

// The chief's terminal and the folders are one person's; the others try nothing in them, so that no
// two processes try the same file at once. What a group that was started again has saved itself is
// neither new data to it nor another model.
TrainerOptions options_of_worker(const TrainRequest& request, const Job& job,
                                 const std::string& folder, bool chief, RunOutput& output) {
  TrainRequest own = request;
  if (started_again())
    if (const auto newest = storage::CheckpointFolder(storage::any_disk(), folder).latest();
        newest && newest->path != request.resume) {
      own.resume = newest->path;
      own.new_data = own.partial = false;
    }
  TrainerOptions options =
      trainer_options(own, job, folder, output, chief ? Trial::kYes : Trial::kNo);
  if (chief) options.folder_lock = claim(own, options);
  return options;
}

}  // namespace

TrainedJob train_as_worker(const TrainRequest& request, const RunHost& host) {
  RunOutput& output = host.output;
  if (request.take_over)
    throw InvalidArgumentError("--take-over: a group of workers has no coordinator to replace");
  const TFConfigClusterResolver resolver;
  const ClusterSpec cluster = resolver.cluster_spec();
  if (cluster.empty())
    throw InvalidArgumentError(
        "strategy.kind is \"multi_worker_mirrored\", and TF_CONFIG names no cluster: run the job "
        "by `cairn train`, or give every worker a TF_CONFIG with its task");
  verify_distinct_addresses(cluster);
  const bool chief = is_chief(cluster, resolver.task_type(), resolver.task_id());
  TrainRequest own = request;
  if (!chief) own.report.clear();
  PreparedJob prepared = prepare(own, output);
  Job& job = prepared.job;
  job.cluster.workers =
      static_cast<int>(cluster.task_count("chief") + cluster.task_count("worker"));
  host.tell_prepared();
  const GivenClusterRun run(request.dir, {cluster, request.cluster_id, request.token_file});
  output.say(str(strategy_text(job), computes_on(job), "; the run's folder is ", run.dir()));
  TrainerOptions options =
      options_of_worker(own, job, checkpoint_folder(own, job, run.dir()), chief, output);
  options.model_folder = model_folder(run.dir());
  options.graph_folder = graph_folder(run.dir());
  options.spare_folder = own_checkpoints(run.dir());
  if (chief) options.reporter = reporter_in(run.dir(), own, job, options);
  const FittedFeatures features = features_of(prepared, options);
  MultiWorkerOptions group{
      .seed = job.model.seed,
      .devices = replica_devices(job, static_cast<std::size_t>(resolver.task_id().value_or(0))),
      .transport = rpc::parse_transport(job.cluster.transport)};
  options.gpus = [names = group.devices] { return gpus_here(names); };
  if (!request.cluster_id.empty()) group.cluster_id = request.cluster_id;
  if (!request.token_file.empty()) group.token = rpc::read_token(request.token_file);
  CommunicationOptions communication;
  communication.bfloat16_on_wire = job.cluster.wire == "bfloat16";
  MultiWorkerMirroredStrategy strategy(resolver, communication, group);
  if (!strategy.sums_text().empty()) output.say(strategy.sums_text());
  compute_as(job, strategy);
  LocalSteps steps(strategy, &host.interrupted);
  const TrainedJob place{.folder = run.dir(), .checkpoints = options.checkpoint_folder};
  const TrainingOutcome outcome = Trainer(job, features, steps, std::move(options)).run();
  say_outcome(prepared, outcome, output);
  return finish(prepared, own, outcome, {}, place);
}

}  // namespace cairn::tools
