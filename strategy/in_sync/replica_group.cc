#include "strategy/in_sync/replica_group.h"

#include <algorithm>

#include "collective/local/group_run.h"

namespace cairn {

// ---- threads ----

ReplicaThreads::ReplicaThreads(int replicas) {
  for (int i = 1; i < replicas; ++i) threads_.emplace_back([this, i] { work(i); });
}

ReplicaThreads::~ReplicaThreads() {
  {
    std::lock_guard hold(mutex_);
    stopped_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// The error is kept before `failed` is called, which makes the others fail: what they throw for
// want of this replica is never the first.
void ReplicaThreads::call(int replica) {
  try {
    (*body_)(replica);
  } catch (...) {
    {
      std::lock_guard hold(mutex_);
      if (!first_error_) first_error_ = std::current_exception();
    }
    (*failed_)(replica);
  }
}

// A run is known by its number, so that a thread that is late takes part in each exactly once.
void ReplicaThreads::work(int replica) {
  for (std::uint64_t seen = 0;; ++seen) {
    {
      std::unique_lock hold(mutex_);
      begun_.wait(hold, [&] { return stopped_ || runs_ > seen; });
      if (stopped_) return;
    }
    call(replica);
    std::lock_guard hold(mutex_);
    if (--running_ == 0) ended_.notify_one();
  }
}

// Waiting for the threads has no limit of its own: they compute, and where they wait for one
// another the group's timeout ends it. The caller's thread is replica 0's, to save a wake-up.
void ReplicaThreads::run(const std::function<void(int)>& body,
                         const std::function<void(int)>& failed) {
  {
    std::lock_guard hold(mutex_);
    body_ = &body;
    failed_ = &failed;
    first_error_ = nullptr;
    running_ = static_cast<int>(threads_.size());
    ++runs_;
  }
  begun_.notify_all();
  call(0);
  std::unique_lock hold(mutex_);
  ended_.wait(hold, [this] { return running_ == 0; });
  if (first_error_) std::rethrow_exception(std::exchange(first_error_, nullptr));
}

// ---- the group ----

ReplicaGroup::ReplicaGroup(std::vector<Member> members, GroupStore::Rows which,
                           std::shared_ptr<CrossDeviceOps> ops, std::chrono::milliseconds timeout,
                           Joining joining)
    : members_(std::move(members)),
      which_(which),
      ops_(std::move(ops)),
      timeout_(timeout),
      joining_(std::move(joining)),
      threads_(static_cast<int>(members_.size())) {
  for (const Member& member : members_)
    workspaces_.push_back(std::make_unique<Workspace>(member.device));
  meet();
}

ReplicaGroup::~ReplicaGroup() = default;

// A group of the devices that has failed goes before the next one is made.
void ReplicaGroup::join() {
  using Place = CrossDeviceOps::MeetingPlace;
  devices_ = {};
  const Place place = ops_->meeting_place();
  if (place == Place::kHost) return;
  std::vector<Device*> all;
  for (const Member& member : members_) all.push_back(&member.device);
  devices_ = joining_(all);
  if (place == Place::kDevicesOnly && devices_.members.empty())
    throw FailedPreconditionError(
        str("cross_device_ops: NcclAllReduce needs a GPU of its own for each replica, and ",
            devices_.text, ": ThreadOps, the default, is what such replicas use"));
}

void ReplicaGroup::abort_devices() noexcept {
  if (sums_on_devices()) devices_.members.front()->abort();
}

std::string ReplicaGroup::sums_text() const {
  if (sums_on_devices()) return "replicas' values are summed on their GPUs, " + devices_.text;
  const bool any_gpu = std::ranges::any_of(members_, [](const Member& member) {
    return member.device.memory() == Device::Memory::kOwn;
  });
  if (!any_gpu) return {};
  return str("replicas' values are summed in the host's memory: ",
             devices_.text.empty() ? "cross_device_ops say so" : devices_.text);
}

// The stores refer to the members, so they go first.
void ReplicaGroup::meet() {
  join();
  earlier_ = counts();
  stores_.clear();
  groups_ = ops_->group(static_cast<int>(members_.size()), timeout_);
  if (groups_.size() != members_.size())
    throw InvalidArgumentError(str("cross_device_ops: a group of ", groups_.size(), " members for ",
                                   members_.size(), " replicas"));
  for (std::size_t i = 0; i < members_.size(); ++i)
    stores_.push_back(std::make_unique<GroupStore>(*groups_[i], members_[i].rows, which_));
}

std::vector<CollectiveCounts> ReplicaGroup::counts() const {
  std::vector<CollectiveCounts> counts = earlier_;
  counts.resize(members_.size());
  for (std::size_t i = 0; i < groups_.size(); ++i)
    if (groups_[i]) counts[i] += groups_[i]->counts();
  return counts;
}

// A replica that has failed says why and leaves at once, so that the others, here or in other
// processes, need not wait for it.
std::vector<std::vector<Tensor>> ReplicaGroup::run(std::vector<Run> runs, const StepContext& step) {
  if (!std::all_of(groups_.begin(), groups_.end(), [](const auto& one) { return one != nullptr; }))
    meet();
  std::vector<std::vector<Tensor>> outputs(runs.size());
  threads_.run(
      [&](int replica) {
        const auto i = static_cast<std::size_t>(replica);
        outputs[i] = run_in_group(runs[i].plan, *workspaces_[i], *stores_[i], *groups_[i], step,
                                  std::move(runs[i].inputs),
                                  sums_on_devices() ? devices_.members[i].get() : nullptr);
      },
      [&](int replica) {
        const auto i = static_cast<std::size_t>(replica);
        groups_[i]->abort(error_parts(std::current_exception()));
        earlier_[i] += groups_[i]->counts();
        stores_[i] = nullptr;
        groups_[i] = nullptr;
      });
  return outputs;
}

}  // namespace cairn
