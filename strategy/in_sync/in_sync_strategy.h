// InSyncStrategy: what the strategies of several replicas in step share: MirroredStrategy and
// CentralStorageStrategy, whose replicas are in one process, and MultiWorkerMirroredStrategy, which
// has some in each of several.
//
// Every replica is a thread with a device, and runs the function as a graph of its own, traced in
// its own context. Replicas meet where the function says so: in the sum of gradients that an
// optimizer applies, in changes of a variable that become one, in ReplicaContext::all_reduce and
// merge_call. A function that call() calls, and that run()s others and reduces what they return,
// runs on every replica too: each computes all of the cross-replica code, on equal values, and what
// call() returns are replica 0's outputs.
//
//   Repeats   The order of all sums is fixed: a run of the same seed repeats bit for bit, and
//             copies of variables stay bit-equal. Where the replicas' GPUs sum, the order is
//             NCCL's: fixed as long as the GPUs, their links and NCCL are the same ones.
//   Failures  The first replica's error is what run() and call() raise, when all replicas have
//             ended. A push is applied for all replicas or for none, so that the copies stay equal,
//             and the strategy can be used on; what was pushed before the failure stays.
//   Batches   experimental_distribute_dataset() takes global batches and cuts them into a piece for
//             each replica (InputOptions::batch_splitter). Of distribute_datasets_from_function()
//             the batches go to the replicas in turn.
//   Outputs   A value that is the same constant on all replicas is bare, others are per replica.
//             Values of other processes' replicas are not known here, so none is bare there.
//   Thread    one at a time.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective/base/counts.h"
#include "core/exec/executor.h"
#include "strategy/base/local_strategy.h"
#include "strategy/in_sync/cross_device_ops.h"

namespace cairn {

class DealtIterator;
class ReplicaRunner;
class ReplicaRuntime;
enum class Dealing : std::uint8_t;
struct NamedDevice;

struct InSyncOptions {
  std::uint64_t seed = 0;  // of initial values and of random operations
  // For debugging: after every run all copies of each variable are compared.
  //   Errors  FailedPrecondition, from run() and call(): a copy differs; names the variable.
  bool check_replicas = false;
  // How replicas' values become one: the program's own, or cross_device_ops_of("Ring"); null:
  // ThreadOps.
  std::shared_ptr<CrossDeviceOps> cross_device_ops = nullptr;
  // How long a replica waits for the others where they meet: longer than one of them may compute
  // between two meetings. One that has failed is not waited for.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

class InSyncStrategy : public LocalStrategy {
 public:
  ~InSyncStrategy() override;
  int num_replicas_in_sync() const override { return replicas_; }

  // Not in a traced function, which has this replica's value alone.
  //   Errors  Unimplemented: it is called there, with a value per replica.
  std::vector<RunValue> experimental_local_results(const PerReplica& value) const override;

  // Independent of the number of replicas: what was saved here restores under any other strategy
  // and the other way round. Variables with ON_READ are saved as a cross-replica read gives them,
  // and restored so that it gives the same.
  std::string save(const CheckpointPolicy& policy, const std::string& metadata = "{}") override;

  // Counts of the collective calls of this process's replicas, in their order; empty if there is
  // one replica in all, which has no others to meet. To ask between steps.
  std::vector<CollectiveCounts> collective_counts() const;

  // Where the values of replicas on GPUs are summed: "replicas' values are summed on their GPUs, by
  // NCCL 2.28.3", or in the host's memory, and why. Empty: no replica here computes on a GPU.
  std::string sums_text() const;

  // The store that replica `replica` of this process reads: its copy, or the one place. To look at
  // between steps.
  LocalStore& store_of(int replica);

 protected:
  // `devices`: one per replica; they outlive it.
  InSyncStrategy(std::unique_ptr<ReplicaRuntime> runtime, const std::vector<NamedDevice>& devices,
                 const InSyncOptions& options);
  // Some of the replicas may run elsewhere: `runtime` says which are here, on a device each, and
  // `runner` runs them; `runner` is null if there is one replica in all.
  InSyncStrategy(std::unique_ptr<ReplicaRuntime> runtime, const std::vector<NamedDevice>& devices,
                 std::unique_ptr<ReplicaRunner> runner, bool check_replicas);

  ReplicaRuntime& replica_runtime() { return runtime_; }
  const ReplicaRuntime& replica_runtime() const { return runtime_; }
  std::shared_ptr<const IteratorSource> dealt(const Dataset& dataset, Dealing how, int replicas,
                                              bool fetches, const InputContext& pipeline = {});
  // The next elements of the replicas of this process.
  virtual std::vector<Element> elements_of(const DealtIterator& data);
  // Which of the pieces that the iterator deals is that replica's of this process.
  virtual std::size_t piece_of(const DealtIterator& data, int replica) const;
  ElementSpec distributed_spec(const Dataset& dataset, const InputOptions& options) const override;
  std::shared_ptr<const IteratorSource> iterator_of(const DistributedDataset& dataset) override;
  std::vector<Element> next_elements(const IteratorSource& source) override;

  ReplicasHere replicas_of_process() const override { return {first_, local_}; }
  std::vector<std::string> worker_devices() const override { return device_names_; }
  StepOutputs run_step(Function& function, const std::vector<Argument>& arguments) override;
  RunResult call_for_each_replica(Function& function,
                                  const std::vector<RunArgument>& arguments) override;
  Array reduce_replicas(ReduceOp op, const std::vector<Array>& values) const override;
  Array gather_replicas(const std::vector<Array>& values, int axis) const override;
  std::vector<Array> replicas_here(const PerReplica& value) const override;
  std::vector<Array> all_reduce(const ReplicaContext& replica, ReduceOp op,
                                const std::vector<Array>& values) const override;
  PerReplica merge(const ReplicaContext& replica, const ReplicaContext::MergeBody& body,
                   const std::vector<Array>& arguments) override;

 private:
  // How functions run, chosen when the strategy is made: as one replica alone, or in step.
  class Path;
  class Alone;
  class InStep;
  InSyncStrategy(std::unique_ptr<ReplicaRuntime> runtime, const std::vector<NamedDevice>& devices);

  ReplicaRuntime& runtime_;
  const int replicas_, local_, first_;     // in all, of this process, and its first one
  std::vector<std::string> device_names_;  // by replica of this process
  bool on_devices_ = false;                // with memory of their own
  std::unique_ptr<Path> path_;
};

}  // namespace cairn
