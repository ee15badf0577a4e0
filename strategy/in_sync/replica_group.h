// ReplicaGroup: the replicas of one process, a thread each, and the group in which they meet, alone
// or with those of other processes.
//
// Replica 0 runs on the caller's thread. If a run fails on one replica, the others' runs fail where
// they need it; the group is then made anew, so that the next run begins as the first one did.
//   Thread  one at a time.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "collective/local/group_store.h"
#include "core/exec/executor.h"
#include "core/kernels/device.h"
#include "strategy/in_sync/cross_device_ops.h"
#include "strategy/in_sync/replica_runner.h"

namespace cairn {

// Calls a function on all replicas' threads.
class ReplicaThreads {
 public:
  explicit ReplicaThreads(int replicas);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  // body(i) for every replica i, at once; returns when all have returned. `failed(i)` is called on
  // the thread of a replica whose body throws, where its error is the current exception, once it is
  // known to be the first or not.
  //   Errors  the one that was thrown first.
  void run(const std::function<void(int)>& body, const std::function<void(int)>& failed);

 private:
  void call(int replica);
  void work(int replica);

  std::mutex mutex_;  // guards all below
  std::condition_variable begun_, ended_;
  const std::function<void(int)>* body_ = nullptr;
  const std::function<void(int)>* failed_ = nullptr;
  std::uint64_t runs_ = 0;  // that have begun
  int running_ = 0;
  bool stopped_ = false;
  std::exception_ptr first_error_;
  std::vector<std::thread> threads_;
};

class ReplicaGroup final : public ReplicaRunner {
 public:
  struct Member {
    Device& device;
    VariableStore& rows;  // a copy of its own, or the one place
  };
  // How the replicas' devices become a group in which they sum values.
  using Joining = std::function<DeviceGroup(std::span<Device* const>)>;
  // `timeout`: how long a replica waits for the others in one exchange.
  ReplicaGroup(std::vector<Member> members, GroupStore::Rows which,
               std::shared_ptr<CrossDeviceOps> ops, std::chrono::milliseconds timeout,
               Joining joining = join_here);
  ~ReplicaGroup() override;

  std::vector<std::vector<Tensor>> run(std::vector<Run> runs, const StepContext& step) override;
  bool sums_on_devices() const override { return !devices_.members.empty(); }
  std::string sums_text() const override;
  std::vector<CollectiveCounts> counts() const override;
  // Makes devices stop waiting for one another: a run in progress fails. Not to be called while
  // run() makes a new group after a failed run.
  //   Thread  any.
  void abort_devices() noexcept;

 private:
  static DeviceGroup join_here(std::span<Device* const> devices) { return join_devices(devices); }
  void meet();
  void join();

  const std::vector<Member> members_;
  const GroupStore::Rows which_;
  const std::shared_ptr<CrossDeviceOps> ops_;
  const std::chrono::milliseconds timeout_;
  const Joining joining_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;
  DeviceGroup devices_;                              // where the devices sum
  std::vector<std::unique_ptr<Collective>> groups_;  // by replica; empty: it has left
  std::vector<std::unique_ptr<GroupStore>> stores_;
  std::vector<CollectiveCounts> earlier_;  // by replica, of groups that were left
  ReplicaThreads threads_;
};

}  // namespace cairn
