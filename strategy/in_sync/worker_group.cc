#include "strategy/in_sync/worker_group.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "collective/local/hierarchical_group.h"
#include "coordinator/cluster/task_roles.h"
#include "strategy/in_sync/cross_device_ops.h"

namespace cairn {

// ---- who they are ----

PlaceInGroup place_in_group(const ClusterResolver& resolver) {
  const ClusterSpec spec = resolver.cluster_spec();
  const TaskType type = resolver.task_type();
  const TaskIndex id = resolver.task_id();
  if (spec.empty() || type == "evaluator") return {};
  if (spec.has_job("ps"))
    throw InvalidArgumentError(
        "the cluster has a job \"ps\", and MultiWorkerMirroredStrategy has its variables on the "
        "workers: take the job out, or train with ParameterServerStrategy");
  if (!type || !id)
    throw InvalidArgumentError(
        "there is a cluster, and nothing says which of its tasks this process is: give TF_CONFIG a "
        "\"task\" with \"type\" and \"index\"");
  validate_cluster_spec(spec, type, id);
  verify_distinct_addresses(spec);
  PlaceInGroup place;
  for (const char* job : {"chief", "worker"})
    for (const auto& [index, address] : spec.tasks(job)) {
      if (job == *type && index == *id) place.rank = static_cast<int>(place.members.size());
      place.members.push_back({job, static_cast<std::uint32_t>(index), address});
    }
  return place;
}

// ---- errors ----

namespace {

constexpr std::string_view kAdvice =
    ". This group of workers has ended: start the program again on every worker; they meet again, "
    "and go on from the newest checkpoint that the program restores";

// One error may come through here twice: a failed run's error is kept and raised again.
ErrorParts advised(ErrorParts error) {
  if (error.message.find(kAdvice) == std::string::npos) error.message += kAdvice;
  return error;
}

class AdvisedMember final : public Collective {
 public:
  explicit AdvisedMember(std::unique_ptr<Collective> member) : member_(std::move(member)) {}
  int rank() const override { return member_->rank(); }
  int size() const override { return member_->size(); }
  // A value that has no sum is refused before anything happens, and the group goes on.
  Ticket begin_all_reduce(std::vector<AllReduceBuffer> reductions) override {
    return member_->begin_all_reduce(std::move(reductions));
  }
  void wait(Ticket ticket) override {
    advising([&] { member_->wait(ticket); });
  }
  Tensor broadcast(const Tensor& value, int root) override {
    return advising([&] { return member_->broadcast(value, root); });
  }
  std::vector<Tensor> all_gather(const Tensor& value) override {
    return advising([&] { return member_->all_gather(value); });
  }
  Tensor reduce(ReduceOp op, const Tensor& value, int root) override {
    return advising([&] { return member_->reduce(op, value, root); });
  }
  void barrier() override {
    advising([&] { member_->barrier(); });
  }
  void abort(const ErrorParts& error) override { member_->abort(error); }
  void when_failed(std::function<void()> act) override { member_->when_failed(std::move(act)); }
  void require_well() override {
    advising([&] { member_->require_well(); });
  }
  CollectiveCounts counts() const override { return member_->counts(); }

 private:
  template <typename Call>
  static auto advising(Call call) -> decltype(call()) {
    try {
      return call();
    } catch (const Error&) {
      throw_error(advised(error_parts(std::current_exception())));
    }
  }

  const std::unique_ptr<Collective> member_;
};

}  // namespace

std::unique_ptr<Collective> with_advice(std::unique_ptr<Collective> member) {
  return std::make_unique<AdvisedMember>(std::move(member));
}

Tensor sum_of_members(Collective& group, const Tensor& own) {
  Tensor sum = own.clone();
  const AllReduceBuffer reduction{ReduceOp::kSum, sum.dtype(), sum.elements(), sum.mutable_raw(),
                                  sum.owner()};
  group.wait(group.begin_all_reduce({reduction}));
  return sum;
}

std::vector<std::int64_t> told_by_all(Collective& group, std::int64_t own) {
  std::vector<std::int64_t> all;
  for (const Tensor& each : group.all_gather(Tensor::scalar(own)))
    all.push_back(each.item<std::int64_t>());
  return all;
}

// ---- a step ----

namespace {

constexpr auto kConnectingMax = std::chrono::minutes(2);

// The replicas of this process and those of the others, in one group.
class AmongWorkers final : public CrossDeviceOps {
 public:
  explicit AmongWorkers(Collective& processes) : processes_(processes) {}
  std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) override {
    return make_hierarchical_group(processes_, replicas, timeout);
  }
  MeetingPlace meeting_place() const override { return MeetingPlace::kDevicesIfTheyCan; }

 private:
  Collective& processes_;
};

}  // namespace

// A group of GPUs that has not connected within minutes will not, however long a step may take.
WorkerRunner::WorkerRunner(std::vector<ReplicaGroup::Member> replicas, Collective& processes,
                           std::chrono::milliseconds timeout, CommunicationImplementation wish)
    : replicas_(std::move(replicas), GroupStore::Rows::kCopies,
                std::make_shared<AmongWorkers>(processes), timeout,
                [&processes, wish, timeout](std::span<Device* const> devices) {
                  return join_devices_of_workers(&processes, devices, wish,
                                                 std::min<Duration>(timeout, kConnectingMax));
                }) {
  if (sums_on_devices()) watch_.emplace(processes, [this] { replicas_.abort_devices(); });
}

// A replica that fails ends the group of processes itself; here the error is only kept.
std::vector<std::vector<Tensor>> WorkerRunner::run(std::vector<Run> runs, const StepContext& step) {
  if (failed_)
    throw UnavailableError(str("an earlier run failed: ", advised(*failed_).message),
                           failed_->task);
  try {
    return replicas_.run(std::move(runs), step);
  } catch (...) {
    failed_ = error_parts(std::current_exception());
    throw;
  }
}

}  // namespace cairn
