#include "strategy/in_sync/in_sync_strategy.h"

#include <mutex>

#include "strategy/base/dealt_iterator.h"
#include "strategy/base/device_names.h"
#include "strategy/in_sync/in_sync_paths.h"
#include "strategy/in_sync/replica_group.h"
#include "strategy/in_sync/replica_runtime.h"

namespace cairn {
namespace {

// The one place, from which all replicas read. Pushes come from one of them, while no other reads.
class LockedStore final : public VariableStore {
 public:
  explicit LockedStore(VariableStore& store) : store_(store) {}
  void pull(const StepContext& step, std::span<Read> reads) override {
    std::lock_guard hold(mutex_);
    store_.pull(step, reads);
  }
  void push(const StepContext& step, std::span<Update> updates) override {
    std::lock_guard hold(mutex_);
    store_.push(step, updates);
  }

 private:
  std::mutex mutex_;  // guards the store: looking for rows uses memory of its own
  VariableStore& store_;
};

}  // namespace

InSyncStrategy::InSyncStrategy(std::unique_ptr<ReplicaRuntime> runtime,
                               const std::vector<NamedDevice>& devices)
    : LocalStrategy(std::move(runtime), *devices.front().device),
      runtime_(static_cast<ReplicaRuntime&>(LocalStrategy::runtime())),
      replicas_(runtime_.replicas()),
      local_(runtime_.local_replicas()),
      first_(runtime_.first_replica()) {
  for (const NamedDevice& device : devices) {
    device_names_.push_back(device.name);
    on_devices_ = on_devices_ || device.device->memory() == Device::Memory::kOwn;
  }
  runtime_.serve(*this);
}

InSyncStrategy::InSyncStrategy(std::unique_ptr<ReplicaRuntime> runtime,
                               const std::vector<NamedDevice>& devices,
                               std::unique_ptr<ReplicaRunner> runner, bool check_replicas)
    : InSyncStrategy(std::move(runtime), devices) {
  if (runner)
    path_ = std::make_unique<InStep>(*this, std::move(runner), check_replicas);
  else
    path_ = std::make_unique<Alone>(*this);
}

InSyncStrategy::InSyncStrategy(std::unique_ptr<ReplicaRuntime> runtime,
                               const std::vector<NamedDevice>& devices,
                               const InSyncOptions& options)
    : InSyncStrategy(std::move(runtime), devices) {
  if (replicas_ == 1) {
    path_ = std::make_unique<Alone>(*this);
    return;
  }
  const bool copies = runtime_.copies() > 1;
  std::unique_ptr<VariableStore> one_place;
  if (!copies) one_place = std::make_unique<LockedStore>(runtime_.store());
  std::vector<ReplicaGroup::Member> members;
  for (int i = 0; i < replicas_; ++i) {
    VariableStore* rows =
        copies ? static_cast<VariableStore*>(&runtime_.store(i)) : one_place.get();
    members.push_back({*devices[static_cast<std::size_t>(i)].device, *rows});
  }
  auto group = std::make_unique<ReplicaGroup>(
      std::move(members), copies ? GroupStore::Rows::kCopies : GroupStore::Rows::kOnePlace,
      options.cross_device_ops ? options.cross_device_ops : std::make_shared<ThreadOps>(),
      options.timeout);
  path_ = std::make_unique<InStep>(*this, std::move(group), options.check_replicas,
                                   std::move(one_place));
}

InSyncStrategy::~InSyncStrategy() = default;

LocalStore& InSyncStrategy::store_of(int replica) {
  return runtime_.store(runtime_.copies() > 1 ? replica : 0);
}

std::size_t InSyncStrategy::piece_of(const DealtIterator&, int replica) const {
  return static_cast<std::size_t>(replica);
}

std::vector<Element> InSyncStrategy::elements_of(const DealtIterator& data) { return data.next(); }

// ---- by the path that was chosen ----

std::string InSyncStrategy::sums_text() const { return path_->sums_text(); }
std::vector<CollectiveCounts> InSyncStrategy::collective_counts() const { return path_->counts(); }
RunResult InSyncStrategy::call_for_each_replica(Function& function,
                                                const std::vector<RunArgument>& arguments) {
  return path_->call_for_each_replica(function, arguments);
}
Strategy::StepOutputs InSyncStrategy::run_step(Function& function,
                                               const std::vector<Argument>& arguments) {
  return path_->run_step(function, arguments);
}
std::vector<Array> InSyncStrategy::replicas_here(const PerReplica& value) const {
  return path_->replicas_here(value);
}
Array InSyncStrategy::reduce_replicas(ReduceOp op, const std::vector<Array>& values) const {
  return path_->reduce_replicas(op, values);
}
Array InSyncStrategy::gather_replicas(const std::vector<Array>& values, int axis) const {
  return path_->gather_replicas(values, axis);
}
std::vector<RunValue> InSyncStrategy::experimental_local_results(const PerReplica& value) const {
  return path_->local_results(value);
}
std::vector<Array> InSyncStrategy::all_reduce(const ReplicaContext& replica, ReduceOp op,
                                              const std::vector<Array>& values) const {
  return path_->all_reduce(replica, op, values);
}
PerReplica InSyncStrategy::merge(const ReplicaContext& replica,
                                 const ReplicaContext::MergeBody& body,
                                 const std::vector<Array>& arguments) {
  return path_->merge(replica, body, arguments);
}
ElementSpec InSyncStrategy::distributed_spec(const Dataset& dataset,
                                             const InputOptions& options) const {
  return path_->distributed_spec(dataset, options);
}
std::shared_ptr<const IteratorSource> InSyncStrategy::iterator_of(
    const DistributedDataset& dataset) {
  return path_->iterator_of(dataset);
}
std::vector<Element> InSyncStrategy::next_elements(const IteratorSource& source) {
  return path_->next_elements(source);
}

// ---- data, checkpoints ----

std::shared_ptr<const IteratorSource> InSyncStrategy::dealt(const Dataset& dataset, Dealing how,
                                                            int replicas, bool fetches,
                                                            const InputContext& pipeline) {
  auto made = std::make_shared<DealtIterator>(dataset, how, replicas, reader(), fetches);
  DataCursor& cursor = made->cursor();
  return positioned(std::move(made), cursor, pipeline);
}

// Copy 0 is what is saved. Of a variable that is combined when it is read it holds a part only, so
// for the time of saving it holds the whole.
std::string InSyncStrategy::save(const CheckpointPolicy& policy, const std::string& metadata) {
  const ReplicaRuntime::SavedValues as_read(runtime_);
  return LocalStrategy::save(policy, metadata);
}

}  // namespace cairn
