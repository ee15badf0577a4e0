#include "strategy/servers/parameter_server_strategy.h"

#include <cstdlib>

#include "coordinator/cluster/task_roles.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_host.h"
#include "rpc/server/token.h"
#include "strategy/base/device_names.h"
#include "strategy/servers/cluster_coordinator.h"
#include "strategy/servers/journal_of_environment.h"
#include "strategy/servers/ps_replicas.h"
#include "strategy/servers/worker_replicas.h"

namespace cairn {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

EngineOptions engine_options(const ClusterResolver& resolver,
                             const ParameterServerOptions& options) {
  verify_parameter_server_cluster(resolver);
  EngineOptions engine = options.engine;
  engine.cluster = resolver.cluster_spec();
  engine.variables = {options.partitioner, options.placement, options.seed,
                      options.engine.variables.check_replicas};
  engine.consistency = options.consistency;
  if (options.replicas != 1) engine.recovery.replicas = options.replicas;
  verify_ps_replicas("replicas", engine.recovery.replicas,
                     static_cast<std::int64_t>(engine.cluster.task_count("ps")));
  // Options that the program sets go before the environment, in which `cairn up` leaves the
  // cluster's name and token.
  if (engine.cluster_id == EngineOptions{}.cluster_id)
    if (auto id = environment("CAIRN_CLUSTER_ID"); !id.empty()) engine.cluster_id = id;
  if (engine.token.empty()) engine.token = rpc::token_of_environment();
  if (engine.journal.folder.empty())
    engine.journal.folder = journal_of_environment(engine.consistency).folder;
  return engine;
}

// The signature for which the function is traced: types, and the specs of its iterators.
std::vector<Argument> signature_of(const std::vector<ScheduleArgument>& arguments) {
  std::vector<Argument> signature;
  for (const ScheduleArgument& argument : arguments) {
    if (auto* dataset = std::get_if<PerWorkerDatasetHandle>(&argument))
      signature.emplace_back(std::shared_ptr<const IteratorSource>(*dataset));
    else if (auto* values = std::get_if<PerWorkerValues>(&argument))
      signature.emplace_back(values->values()->front());
    else
      signature.emplace_back(std::get<Tensor>(argument));
  }
  return signature;
}

}  // namespace

ParameterServerStrategy::ParameterServerStrategy(const ClusterResolver& resolver,
                                                 ParameterServerOptions options)
    : ParameterServerStrategy(
          start_engine_thread(engine_options(resolver, options), options.transport),
          options.devices) {}

ParameterServerStrategy::ParameterServerStrategy(std::unique_ptr<EngineHost> host,
                                                 const std::vector<std::string>& devices)
    : host_(std::move(host)) {
  for (const std::string& name : devices)
    if (parse_device_name(name).kind == DeviceName::Kind::kGpu)
      throw InvalidArgumentError(
          str("the device \"", name, "\" was named for each worker, and on what its lanes compute ",
              "is the worker's choice: start it with `cairn-worker --device gpu`, and name logical "
              "CPUs here, one for each replica"));
  const std::size_t replicas = devices_of(devices).size();
  if (replicas > 1) replicas_ = std::make_unique<WorkerReplicas>(*this, static_cast<int>(replicas));
  auto workers = std::make_shared<std::vector<Tensor>>();
  for (std::int64_t worker : host_->engine().workers_of_lanes())
    workers->push_back(Tensor::scalar(worker));
  worker_of_lane_ = std::move(workers);
}
ParameterServerStrategy::~ParameterServerStrategy() = default;

Variable ParameterServerStrategy::create_variable(VariableSpec spec) {
  auto create = [this](VariableSpec own) {
    const std::string beside = colocated_.empty() ? "" : colocated_.back();
    return Variable(host_->engine().registry().create(std::move(own), beside), this);
  };
  return replicas_ ? replicas_->make(std::move(spec), create) : create(std::move(spec));
}

int ParameterServerStrategy::num_replicas_in_sync() const {
  return replicas_ ? replicas_->count() : 1;
}

// Lanes are numbered worker by worker.
int ParameterServerStrategy::num_workers() const {
  return static_cast<int>(worker_of_lane_->back().item<std::int64_t>()) + 1;
}

namespace {

std::vector<std::string> devices_of_job(const ClusterSpec& cluster, const std::string& job,
                                        int devices) {
  std::vector<std::string> names;
  for (const auto& [task, address] : cluster.tasks(job))
    for (int i = 0; i < devices; ++i)
      names.push_back(str("/job:", job, "/task:", task, "/cpu:", i));
  return names;
}

}  // namespace

std::vector<std::string> ParameterServerStrategy::worker_devices() const {
  return devices_of_job(host_->engine().options().cluster, "worker", num_replicas_in_sync());
}

std::vector<std::string> ParameterServerStrategy::parameter_devices() const {
  return devices_of_job(host_->engine().options().cluster, "ps", 1);
}

Array ParameterServerStrategy::worker_index() { return recorded_worker_index(); }

void ParameterServerStrategy::add_slots(const Variable& variable, const UpdateRule& rule) {
  host_->engine().registry().add_slots(variable.name(), rule);
}

RemoteValue ParameterServerStrategy::enqueue(Function& function,
                                             const std::vector<ScheduleArgument>& arguments) {
  const std::vector<Argument> signature = signature_of(arguments);
  return enqueue(
      replicas_ ? replicas_->called(function, signature) : function.concrete(signature, *this),
      function.name(), arguments);
}

// The layout's version is read after the function was traced: tracing makes variables, and the
// closure must not be sent to a lane that knows an older layout than theirs.
RemoteValue ParameterServerStrategy::enqueue(std::shared_ptr<const ConcreteFunction> concrete,
                                             const std::string& name,
                                             const std::vector<ScheduleArgument>& arguments) {
  Engine& engine = host_->engine();
  auto closure = std::make_shared<Closure>();
  const bool takes_worker_index = concrete->takes_worker_index;
  closure->function = engine.register_function(std::move(concrete), name);
  closure->oldest_layout = closure->function->uses_variables ? engine.registry().version() : 0;
  // The list runs beside the arguments and is as long as its last entry needs. The first lane's
  // value stands in as the argument, by which the types are known.
  auto add_values = [&](const std::shared_ptr<const std::vector<Tensor>>& of_lanes) {
    closure->per_worker.resize(closure->arguments.size() + 1);
    closure->per_worker.back() = of_lanes;
    closure->arguments.push_back(of_lanes->front());
  };
  for (const ScheduleArgument& argument : arguments) {
    if (auto* dataset = std::get_if<PerWorkerDatasetHandle>(&argument))
      closure->datasets.push_back(*dataset);
    else if (auto* values = std::get_if<PerWorkerValues>(&argument))
      add_values(values->values());
    else
      closure->arguments.push_back(std::get<Tensor>(argument));
  }
  if (takes_worker_index) add_values(worker_of_lane_);
  RemoteValue value(closure, engine.queue().board(), engine.queue().waiting());
  engine.queue().put(std::move(closure));
  return value;
}

// Waits for one closure's outputs. If the closure was cancelled, the cause is raised instead. An
// error that is raised here is not raised again by the program's next call.
std::vector<Tensor> ParameterServerStrategy::outputs_of(const RemoteValue& value) {
  try {
    return value.get_all();
  } catch (const CancelledError&) {
    host_->engine().queue().done();  // raises the first error, unless another caller has it
    if (auto cause = value.cause()) std::rethrow_exception(cause);
    throw;
  } catch (...) {
    host_->engine().queue().told(std::current_exception());
    throw;
  }
}

ScheduleArgument ParameterServerStrategy::scheduled_argument(const Argument& argument) {
  if (auto* tensor = std::get_if<Tensor>(&argument)) return *tensor;
  auto dataset = std::dynamic_pointer_cast<const PerWorkerDataset>(
      std::get<std::shared_ptr<const IteratorSource>>(argument));
  if (!dataset)
    throw InvalidArgumentError(
        "run: an iterator argument must be a dataset that this strategy's iterate() or its "
        "ClusterCoordinator made");
  return dataset;
}

Strategy::StepOutputs ParameterServerStrategy::run_step(Function& function,
                                                        const std::vector<Argument>& arguments) {
  std::vector<ScheduleArgument> scheduled;
  for (const Argument& argument : arguments) scheduled.push_back(scheduled_argument(argument));
  const RemoteValue value = enqueue(function, scheduled);
  StepOutputs outputs;
  for (Tensor& tensor : outputs_of(value)) outputs.values.emplace_back(std::move(tensor));
  outputs.names = value.output_names();
  return outputs;
}

// It is cut where it becomes a source, so that what is asked of it here is said here.
ElementSpec ParameterServerStrategy::distributed_spec(const Dataset& dataset,
                                                      const InputOptions& options) const {
  return cut(dataset, options).element_spec();
}

std::vector<Element> ParameterServerStrategy::next_elements(const IteratorSource&) {
  throw FailedPreconditionError(
      "get_next: under parameter servers elements go from the data to the workers; pass the "
      "iterator to run(), and take them in the step");
}

// A checkpoint knows positions by the dataset's name, so that the same program finds them again:
// the names go by the order in which it asks.
std::string ParameterServerStrategy::next_dataset_name() { return str("iterated ", datasets_++); }

std::shared_ptr<const IteratorSource> ParameterServerStrategy::iterator_of(
    const DistributedDataset& dataset) {
  ClusterCoordinator coordinator(*this);
  if (dataset.function())
    return coordinator.create_per_worker_dataset(dataset, next_dataset_name());
  return coordinator.create_shared_dataset(dataset, next_dataset_name());
}

std::string ParameterServerStrategy::save(const CheckpointPolicy& policy,
                                          const std::string& metadata) {
  return host_->ask<std::string>([policy, metadata](Engine& engine) -> rpc::Task<std::string> {
    co_return co_await engine.save(policy, metadata);
  });
}

RestoreStatus ParameterServerStrategy::restore(const std::string& checkpoint,
                                               const RestoreOptions& options) {
  EngineHost& host = *host_;
  using Plan = std::shared_ptr<const RestorePlan>;
  auto plan = host.ask<Plan>([checkpoint, options](Engine& engine) -> rpc::Task<Plan> {
    co_await engine.restore(checkpoint, options);
    co_return engine.restored_plan();
  });
  auto made = [&host] { return variables_of(*host.engine().registry().layout()); };
  auto accept = [&host] {
    host.run([](Engine& engine) -> rpc::Task<void> {
      engine.expect_partial_restore();
      co_return;
    });
  };
  return RestoreStatus(std::move(plan), made, accept);
}

// Eager reads and assignments are closures too: any worker does them.
std::vector<Tensor> ParameterServerStrategy::run_now(const ConcreteFunction& function) {
  Engine& engine = host_->engine();
  auto closure = std::make_shared<Closure>();
  // The graph was built by a single operation and was never traced: what tracing adds, its bytes
  // and their hash, is added here, so that equal reads are one function on the workers.
  auto concrete = std::make_shared<ConcreteFunction>(function);
  concrete->bytes = serialize(concrete->graph);
  concrete->hash = content_hash(concrete->bytes);
  closure->function = engine.register_function(std::move(concrete), "a read or an assignment");
  closure->oldest_layout = engine.registry().version();
  RemoteValue value(closure, engine.queue().board(), engine.queue().waiting());
  engine.queue().put(std::move(closure));
  return outputs_of(value);
}

}  // namespace cairn
