#include <cstdlib>

#include "coordinator/cluster_coordinator.h"
#include "coordinator/engine.h"
#include "coordinator/engine_host.h"
#include "coordinator/strategy.h"
#include "coordinator/task_roles.h"
#include "rpc/token.h"

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
  engine.variables = {options.partitioner, options.placement, options.seed};
  if (engine.cluster_id == EngineOptions{}.cluster_id)
    if (auto id = environment("CAIRN_CLUSTER_ID"); !id.empty()) engine.cluster_id = id;
  if (engine.token.empty()) engine.token = rpc::token_of_environment();
  return engine;
}

// For who waits for one value: what it was cancelled for is raised (and so is told), not that it
// was.
std::vector<Tensor> outputs_of(const RemoteValue& value, ClosureQueue& queue) {
  try {
    return value.get_all();
  } catch (const CancelledError&) {
    queue.done();  // raises the first error, unless another caller has it
    if (auto cause = value.cause()) std::rethrow_exception(cause);
    throw;
  }
}

}  // namespace

ParameterServerStrategy::ParameterServerStrategy(const ClusterResolver& resolver,
                                                 ParameterServerOptions options)
    : ParameterServerStrategy(
          start_engine_thread(engine_options(resolver, options), options.transport)) {}

ParameterServerStrategy::ParameterServerStrategy(std::unique_ptr<EngineHost> host)
    : host_(std::move(host)) {}
ParameterServerStrategy::~ParameterServerStrategy() = default;

Variable ParameterServerStrategy::create_variable(VariableSpec spec) {
  std::string beside = colocated_.empty() ? "" : colocated_.back();
  return Variable(host_->engine().registry().create(std::move(spec), beside), this);
}

void ParameterServerStrategy::add_slots(const Variable& variable, const UpdateRule& rule) {
  host_->engine().registry().add_slots(variable.name(), rule);
}

std::vector<Tensor> ParameterServerStrategy::run_step(Function& function,
                                                      const std::vector<Argument>& arguments) {
  std::vector<ScheduleArgument> scheduled;
  for (const Argument& argument : arguments) {
    if (auto* tensor = std::get_if<Tensor>(&argument)) {
      scheduled.emplace_back(*tensor);
      continue;
    }
    auto dataset = std::dynamic_pointer_cast<const PerWorkerDataset>(
        std::get<std::shared_ptr<const IteratorSource>>(argument));
    if (!dataset)
      throw InvalidArgumentError(
          "run: an iterator argument must be a dataset that this strategy's ClusterCoordinator "
          "made");
    scheduled.emplace_back(std::move(dataset));
  }
  const RemoteValue value = ClusterCoordinator(*this).schedule(function, scheduled);
  return outputs_of(value, host_->engine().queue());
}

std::string ParameterServerStrategy::save(const CheckpointPolicy& policy,
                                          const std::string& metadata) {
  return ClusterCoordinator(*this).save(policy, metadata);
}

RestoreStatus ParameterServerStrategy::restore(const std::string& checkpoint,
                                               const RestoreOptions& options) {
  return ClusterCoordinator(*this).restore(checkpoint, options);
}

// Eager reads and assignments are closures too: any worker does them.
std::vector<Tensor> ParameterServerStrategy::run_now(const ConcreteFunction& function) {
  Engine& engine = host_->engine();
  auto closure = std::make_shared<Closure>();
  auto concrete = std::make_shared<ConcreteFunction>(function);
  concrete->bytes = serialize(concrete->graph);
  concrete->hash = content_hash(concrete->bytes);
  closure->function = engine.register_function(std::move(concrete), "a read or an assignment");
  closure->layout_version = engine.registry().version();
  RemoteValue value(closure, engine.queue().board(), engine.queue().waiting());
  engine.queue().put(std::move(closure));
  return outputs_of(value, engine.queue());
}

}  // namespace cairn
