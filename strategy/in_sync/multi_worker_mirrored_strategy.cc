#include "strategy/in_sync/multi_worker_mirrored_strategy.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <span>
#include <sstream>

#include "core/graph/ops.h"
#include "core/graph/recording.h"
#include "rpc/server/token.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "strategy/base/dealt_iterator.h"
#include "strategy/base/device_names.h"
#include "strategy/in_sync/replica_runtime.h"
#include "strategy/in_sync/worker_group.h"

namespace cairn {
namespace {

bool tracing() { return TraceContext::current() != nullptr; }

// The program's settings take precedence over the environment.
std::unique_ptr<Collective> met(const ClusterResolver& resolver,
                                const CommunicationOptions& communication,
                                const MultiWorkerOptions& options) {
  devices_of(options.devices);  // errors of this process come before any wait for others
  const PlaceInGroup place = place_in_group(resolver);
  if (place.members.size() < 2) return nullptr;
  NetworkGroupOptions group;
  group.members = place.members;
  group.rank = place.rank;
  group.communication = communication;
  group.start_timeout = options.start_timeout;
  group.cluster = options.cluster_id;
  const char* named = std::getenv("CAIRN_CLUSTER_ID");
  if (options.cluster_id == MultiWorkerOptions{}.cluster_id && named != nullptr && *named != '\0')
    group.cluster = named;
  group.token = options.token.empty() ? rpc::token_of_environment() : options.token;
  group.insecure = options.insecure;
  group.transport = options.transport;
  const char* transport = std::getenv("CAIRN_TRANSPORT");
  if (options.transport == rpc::Transport::kAuto && transport != nullptr && *transport != '\0')
    group.transport = rpc::parse_transport(transport);
  return make_network_group(group);
}

}  // namespace

struct MultiWorkerMirroredStrategy::Parts {
  std::unique_ptr<ReplicaRuntime> runtime;
  std::vector<NamedDevice> devices;
  std::unique_ptr<ReplicaRunner> runner;  // null: there is one replica in all
  bool check_replicas = false;
};

namespace {

// All learn of it alike, whichever two they are.
void require_as_many_devices(Collective& group, std::size_t own) {
  const std::vector<std::int64_t> all = told_by_all(group, static_cast<std::int64_t>(own));
  for (std::size_t worker = 1; worker < all.size(); ++worker)
    if (all[worker] != all[0])
      throw InvalidArgumentError(str(
          "worker 0 has ", all[0], all[0] == 1 ? " device" : " devices", ", and worker ", worker,
          " has ", all[worker], ": all must have the same number (MultiWorkerOptions::devices)"));
}

// For a single worker: its replicas meet only one another, by the same rules as with several.
std::unique_ptr<ReplicaRunner> runner_alone(std::vector<ReplicaGroup::Member> replicas,
                                            CommunicationImplementation wish,
                                            std::chrono::milliseconds timeout) {
  std::shared_ptr<CrossDeviceOps> ops = std::make_shared<ThreadOps>();
  if (wish == CommunicationImplementation::kRing) ops = std::make_shared<Ring>();
  return std::make_unique<ReplicaGroup>(
      std::move(replicas), GroupStore::Rows::kCopies, std::move(ops), timeout,
      [wish, timeout](std::span<Device* const> devices) {
        return join_devices_of_workers(nullptr, devices, wish, timeout);
      });
}

}  // namespace

// The seed first: initial values are made from it.
MultiWorkerMirroredStrategy::Parts MultiWorkerMirroredStrategy::parts_of(
    std::unique_ptr<Collective> member, const MultiWorkerOptions& options,
    const CommunicationOptions& communication) {
  const bool alone = member == nullptr || member->size() == 1;
  std::uint64_t seed = options.seed;
  const std::vector<NamedDevice> devices = devices_of(options.devices);
  std::unique_ptr<Collective> group = alone ? nullptr : with_advice(std::move(member));
  if (group) {
    require_as_many_devices(*group, devices.size());
    seed = static_cast<std::uint64_t>(
        group->broadcast(Tensor::scalar(static_cast<std::int64_t>(seed)), 0).item<std::int64_t>());
  }
  Parts parts{std::make_unique<ReplicaRuntime>(seed, static_cast<int>(devices.size()),
                                               ReplicaRuntime::Rows::kCopies, std::move(group)),
              devices, nullptr, options.check_replicas};
  std::vector<ReplicaGroup::Member> replicas;
  for (std::size_t i = 0; i < devices.size(); ++i)
    replicas.push_back({*devices[i].device, parts.runtime->store(static_cast<int>(i))});
  const CommunicationImplementation wish = communication.implementation;
  const auto bound = std::chrono::ceil<std::chrono::milliseconds>(
      communication.timeout == Duration(0) ? kCollectiveTimeout : communication.timeout);
  if (!alone)
    parts.runner =
        std::make_unique<WorkerRunner>(std::move(replicas), *parts.runtime->group(), bound, wish);
  else if (devices.size() > 1)
    parts.runner = runner_alone(std::move(replicas), wish, bound);
  return parts;
}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(Parts parts)
    : InSyncStrategy(std::move(parts.runtime), parts.devices, std::move(parts.runner),
                     parts.check_replicas) {}
MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(std::unique_ptr<Collective> member,
                                                         const MultiWorkerOptions& options,
                                                         const CommunicationOptions& communication)
    : MultiWorkerMirroredStrategy(parts_of(std::move(member), options, communication)) {}
MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(std::unique_ptr<Collective> member,
                                                         MultiWorkerOptions options)
    : MultiWorkerMirroredStrategy(std::move(member), options, CommunicationOptions{}) {}
MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(const ClusterResolver& resolver,
                                                         const CommunicationOptions& communication,
                                                         MultiWorkerOptions options)
    : MultiWorkerMirroredStrategy(met(resolver, communication, options), options, communication) {}
MultiWorkerMirroredStrategy::~MultiWorkerMirroredStrategy() = default;

int MultiWorkerMirroredStrategy::num_workers() const {
  return replica_runtime().replicas() / replica_runtime().local_replicas();
}
int MultiWorkerMirroredStrategy::id_in_cluster() const {
  return replica_runtime().first_replica() / replica_runtime().local_replicas();
}

// ---- values ----

// Computes the value of the replicas here. If only this fails, the other workers would wait for it.
template <typename Act>
Tensor MultiWorkerMirroredStrategy::here(const Act& act) const {
  try {
    return act().eval();
  } catch (const Error&) {
    replica_runtime().group()->abort(error_parts(std::current_exception()));
    throw;
  }
}

Array MultiWorkerMirroredStrategy::reduce_replicas(ReduceOp op,
                                                   const std::vector<Array>& values) const {
  if (num_workers() == 1 || tracing()) return InSyncStrategy::reduce_replicas(op, values);
  const Tensor own = here([&] { return InSyncStrategy::reduce_replicas(ReduceOp::kSum, values); });
  const Array sum(sum_of_members(*replica_runtime().group(), own));
  if (op == ReduceOp::kSum) return sum;
  return cast(sum, DType::kFloat32) / Array(static_cast<float>(num_replicas_in_sync()));
}

Array MultiWorkerMirroredStrategy::gather_replicas(const std::vector<Array>& values,
                                                   int axis) const {
  if (num_workers() == 1 || tracing()) return InSyncStrategy::gather_replicas(values, axis);
  const Tensor own = here([&] { return InSyncStrategy::gather_replicas(values, axis); });
  std::vector<Array> all;
  for (const Tensor& each : replica_runtime().group()->all_gather(own)) all.emplace_back(each);
  return concat(all, axis);
}

// ---- data ----

std::optional<InputContext> MultiWorkerMirroredStrategy::input_context() const {
  return InputContext{.num_input_pipelines = num_workers(),
                      .input_pipeline_id = id_in_cluster(),
                      .num_replicas_in_sync = num_replicas_in_sync()};
}

// One whose data has ended goes on with batches of no examples while others have some.
ElementSpec MultiWorkerMirroredStrategy::in_turn_spec(const Dataset& dataset) const {
  if (num_workers() == 1 || !dataset.batched()) return dataset.element_spec();
  return any_size_spec(dataset.element_spec());
}

// Piece j of a global batch goes to worker j modulo their number, as in the reference.
std::size_t MultiWorkerMirroredStrategy::piece_of(const DealtIterator& data, int replica) const {
  if (data.how() != Dealing::kCut) return InSyncStrategy::piece_of(data, replica);
  return static_cast<std::size_t>(replica * num_workers() + id_in_cluster());
}

// Pipelines of workers are of different lengths: whether any of them goes on is asked at every
// step.
std::vector<Element> MultiWorkerMirroredStrategy::elements_of(const DealtIterator& data) {
  if (num_workers() == 1) return InSyncStrategy::elements_of(data);
  if (data.how() == Dealing::kCut) {
    const std::vector<Element> pieces = data.next();
    std::vector<Element> own;
    for (int i = 0; i < replica_runtime().local_replicas(); ++i)
      own.push_back(pieces[piece_of(data, i)]);
    return own;
  }
  std::vector<Element> own;
  std::optional<ErrorParts> ended;
  try {
    own = data.next();
  } catch (const OutOfRangeError&) {
    ended = error_parts(std::current_exception());
  }
  const auto going_on = Tensor::of<std::int32_t>({1}, std::vector<std::int32_t>{ended ? 0 : 1});
  const Tensor all = sum_of_members(*replica_runtime().group(), going_on);
  if (all.values<std::int32_t>()[0] == 0) throw_error(*ended);
  if (ended)
    own.assign(static_cast<std::size_t>(replica_runtime().local_replicas()),
               empty_batch(data.element_spec()));
  return own;
}

// ---- checkpoints ----

namespace {

// The outcome of one member, which all members get.
struct Outcome {
  std::string text;  // where it came to
  std::optional<ErrorParts> error;
};
Tensor told(const Outcome& own) {
  return Tensor::strings(
      {3}, {own.text, own.error ? std::to_string(static_cast<int>(own.error->code)) : "",
            own.error ? own.error->message : ""});
}
Outcome heard(const Tensor& told) {
  const auto words = told.string_values();
  if (words[1].empty()) return {words[0], {}};
  return {words[0], ErrorParts{static_cast<Code>(std::stoi(words[1])), words[2], {}}};
}

Outcome outcome_of(const std::function<std::string()>& act) {
  try {
    return {act(), {}};
  } catch (const Error&) {
    return {{}, error_parts(std::current_exception())};
  }
}

}  // namespace

namespace {

// A position as texts, which a group gathers.
constexpr std::size_t kTextsOfPosition = 5;
void append(std::vector<std::string>& texts, const PipelinePosition& position) {
  const auto& [ordinal, state] = *position.states.begin();
  std::string open;
  for (const auto& each : position.open) open += str(each.ordinal, " ", each.count, " ");
  texts.insert(
      texts.end(),
      {position.name, std::to_string(position.next), std::move(open), std::to_string(ordinal),
       std::string(reinterpret_cast<const char*>(state.data()), state.size())});
}

PipelinePosition position_of(std::span<const std::string> texts) {
  PipelinePosition position{texts[0], std::stoull(texts[1]), {}, {}};
  std::istringstream open(texts[2]);
  for (PipelinePosition::Open each{}; open >> each.ordinal >> each.count;)
    position.open.push_back(each);
  const auto* state = reinterpret_cast<const std::byte*>(texts[4].data());
  position.states[std::stoull(texts[3])] = {state, state + texts[4].size()};
  return position;
}

}  // namespace

// Each worker has pipelines of its own of the dataset functions; of datasets all stand alike.
void MultiWorkerMirroredStrategy::gather_positions() {
  std::vector<std::string> own;
  for (const PipelinePosition& each : InSyncStrategy::positions_to_save()) append(own, each);
  const Tensor told = Tensor::strings({static_cast<std::int64_t>(own.size())}, own);
  positions_.clear();
  std::set<std::string> names;
  for (const Tensor& of_worker : replica_runtime().group()->all_gather(told)) {
    const auto texts = of_worker.string_values();
    for (std::size_t i = 0; i + kTextsOfPosition <= texts.size(); i += kTextsOfPosition)
      if (names.insert(texts[i]).second)
        positions_.push_back(position_of(std::span(texts).subspan(i, kTextsOfPosition)));
  }
}

std::vector<PipelinePosition> MultiWorkerMirroredStrategy::positions_to_save() const {
  return num_workers() == 1 ? InSyncStrategy::positions_to_save() : positions_;
}

std::string MultiWorkerMirroredStrategy::save(const CheckpointPolicy& policy,
                                              const std::string& metadata) {
  if (num_workers() == 1) return InSyncStrategy::save(policy, metadata);
  const ReplicaRuntime::SavedValues as_read(replica_runtime());
  // A checkpoint is of a step that every worker has ended: what one prints or counts for it before
  // it saves is done, if the group goes on from there.
  replica_runtime().group()->barrier();
  gather_positions();
  Outcome own;
  if (is_chief()) own = outcome_of([&] { return LocalStrategy::save(policy, metadata); });
  const Outcome chiefs = heard(replica_runtime().group()->broadcast(told(own), 0));
  if (own.error) throw_error(*own.error);
  if (chiefs.error) throw_error(chiefs.error->code, str("the chief: ", chiefs.error->message), {});
  return chiefs.text;
}

// Copies that came from different checkpoints would differ for good.
RestoreStatus MultiWorkerMirroredStrategy::restore(const std::string& checkpoint,
                                                   const RestoreOptions& options) {
  if (num_workers() == 1) return InSyncStrategy::restore(checkpoint, options);
  std::optional<RestoreStatus> status;
  const Outcome own = outcome_of([&] {
    status = InSyncStrategy::restore(checkpoint, options);
    return str("step ", global_step(), " and seed ", replica_runtime().store().seed());
  });
  std::vector<Outcome> all;
  for (const Tensor& each : replica_runtime().group()->all_gather(told(own)))
    all.push_back(heard(each));
  if (own.error) throw_error(*own.error);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].error)
      throw FailedPreconditionError(
          str("worker ", rank, " could not restore ", checkpoint, ": ", all[rank].error->message));
    if (all[rank].text != all[0].text)
      throw FailedPreconditionError(str("worker ", rank, " restored ", all[rank].text, " from ",
                                        checkpoint, ", worker 0 ", all[0].text,
                                        ": the folder must be the same for all"));
  }
  return std::move(*status);
}

// The chief's answer counts for all, so that none finds one more, or one fewer, than another.
std::optional<RestoreStatus> MultiWorkerMirroredStrategy::restore_newest(
    const std::string& folder) {
  Outcome own;
  if (is_chief())
    own = outcome_of([&] {
      const auto newest = storage::CheckpointFolder(storage::any_disk(), folder).latest();
      return newest ? newest->path : "";
    });
  Outcome chiefs = own;
  if (num_workers() > 1) chiefs = heard(replica_runtime().group()->broadcast(told(own), 0));
  if (chiefs.error) throw_error(*chiefs.error);
  if (chiefs.text.empty()) return std::nullopt;
  return restore(chiefs.text);
}

}  // namespace cairn
