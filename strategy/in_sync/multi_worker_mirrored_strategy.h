// MultiWorkerMirroredStrategy: synchronous training by several processes, on one or several
// replicas in each, which have a copy of every variable each. The same program runs on every worker
// of the cluster; there is no coordinator, and there are no parameter servers.
//
//   MultiWorkerMirroredStrategy strategy;                    // the cluster is that of TF_CONFIG
//   auto scope = strategy.scope();
//   Function step = strategy.function([&](Iterator batches) {
//     auto [features, label] = batches.get_next();           this replica's part of a global batch
//     Array loss = sum(losses(features, label)) / global_batch_size;
//     optimizer.minimize(loss);                              by the sum of all replicas' gradients
//     return loss;
//   });
//   auto batches = strategy.iterate(strategy.experimental_distribute_dataset(dataset));
//   RunValue loss = strategy.reduce(ReduceOp::kSum, strategy.run(step, {batches})[0]);
//
// A process has a replica on each of its devices (MultiWorkerOptions::devices), all processes as
// many: replica i of worker w is number w * devices + i. What run() returns is what those here
// have; reduce() and gather() combine it with what the others have, and so must be called by all
// processes. So must all that is written here as collective: making a variable, run() and call(), a
// read of an ON_READ variable outside of a replica, save(), restore(). A program that does these by
// is_chief() hangs the others, until the timeout of CommunicationOptions ends the group.
//
//   Variables  as under MirroredStrategy (mirrored_strategy.h), whose devices are those of all
//              workers. Initial values are the chief's.
//   Data       every worker reads all of a dataset, and takes its pieces of each global batch. So
//              the order must be the same on all: a shuffle needs a seed. Of a dataset function
//              each worker is asked for a pipeline of its own, whose batches go to its replicas in
//              turn; a step happens while any of them has data, and those without get a batch of no
//              examples.
//   Repeats    The order of all sums is fixed (collective/local/hierarchical_group.h): a run of the
//              same seed on as many workers and devices repeats bit for bit, and the copies stay
//              bit-equal. Where GPUs sum, the order is NCCL's (in_sync_strategy.h).
//   GPUs       Where every replica of all workers has one of its own, they sum what the replicas
//              all-reduce, by NCCL, as CommunicationOptions::implementation wishes
//              (communication_options.h); sums_text() says whether they do, and whose fault it is
//              if not. A step returns when its sums have ended. After one that has failed the
//              copies on GPUs are of any contents.
//   Alone      without other workers it is a MirroredStrategy on its devices.
//   Failures   A worker's death is Unavailable naming its task, on all others, within a second; a
//              step that fails on one fails on all. The group is over then: start the program again
//              on all workers. They meet again, and go on from the checkpoint that they restore.
//   Thread     one at a time.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/base/collective.h"
#include "collective/base/communication_options.h"
#include "coordinator/cluster/cluster_resolver.h"
#include "rpc/net/transport.h"
#include "strategy/in_sync/in_sync_strategy.h"

namespace cairn {

struct MultiWorkerOptions {
  std::uint64_t seed = 0;       // of initial values and of random operations; the chief's counts
  bool check_replicas = false;  // as InSyncOptions has it: all workers' copies are compared
  // A replica for each, as MirroredStrategy takes them; none: one, on "cpu:0". As many on all
  // workers.
  std::vector<std::string> devices = {};
  // How long the workers wait for each other at the start.
  Duration start_timeout = std::chrono::minutes(5);
  // The cluster's name and secret, and which sockets it uses. Where they are left as they are,
  // those of the environment count: CAIRN_CLUSTER_ID, CAIRN_TOKEN or CAIRN_TOKEN_FILE,
  // CAIRN_TRANSPORT.
  std::string cluster_id = "cairn";
  std::string token = {};
  bool insecure = false;  // listen where other hosts can reach this one without a token
  rpc::Transport transport = rpc::Transport::kAuto;
};

class MultiWorkerMirroredStrategy final : public InSyncStrategy {
 public:
  // Returns when all workers are there. With no cluster, and as an evaluator, which is none of the
  // workers, this process is alone.
  //   Errors  InvalidArgument: the cluster has a job "ps", this process is none of its tasks, a
  //           name that means no device, a logical CPU that is named twice; on all workers: they
  //           have different numbers of devices, naming two. NotFound: a GPU that this machine does
  //           not have. FailedPrecondition, on all workers: NCCL is wished for and one of them
  //           cannot; names it, and the cure. DeadlineExceeded: workers are missing; names them.
  //           Those of make_network_group().
  explicit MultiWorkerMirroredStrategy(const ClusterResolver& resolver = TFConfigClusterResolver(),
                                       const CommunicationOptions& communication = {},
                                       MultiWorkerOptions options = {});
  // With a group that has met already; each member belongs to the strategy of one process. Its
  // member 0 is the chief.
  explicit MultiWorkerMirroredStrategy(std::unique_ptr<Collective> member,
                                       MultiWorkerOptions options = {});
  ~MultiWorkerMirroredStrategy() override;

  int num_workers() const override;
  bool workers_in_step() const override { return true; }
  Array worker_index() override { return Tensor::scalar(std::int64_t{id_in_cluster()}); }
  int id_in_cluster() const;  // the chief, or without one worker 0, has 0
  // Writes what only one may write: checkpoints, logs.
  bool is_chief() const { return id_in_cluster() == 0; }

  // Collective. The chief writes; the others return when the checkpoint is there, with its folder,
  // or fail with the chief's error.
  std::string save(const CheckpointPolicy& policy, const std::string& metadata = "{}") override;
  // Collective: all read the same folder, which must be visible to all of them.
  //   Errors  also FailedPrecondition: the workers read different checkpoints, or one of them
  //           failed; names it. Restore again before going on.
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options = {}) override;
  // Collective: the newest checkpoint below `folder` that the chief finds, restored by all;
  // nothing, if there is none. What a program does first, so that it goes on when it is started
  // again.
  std::optional<RestoreStatus> restore_newest(const std::string& folder);

 private:
  struct Parts;
  explicit MultiWorkerMirroredStrategy(Parts parts);
  MultiWorkerMirroredStrategy(std::unique_ptr<Collective> member, const MultiWorkerOptions& options,
                              const CommunicationOptions& communication);
  static Parts parts_of(std::unique_ptr<Collective> member, const MultiWorkerOptions& options,
                        const CommunicationOptions& communication);

  template <typename Act>
  Tensor here(const Act& act) const;
  Array reduce_replicas(ReduceOp op, const std::vector<Array>& values) const override;
  Array gather_replicas(const std::vector<Array>& values, int axis) const override;
  std::optional<InputContext> input_context() const override;
  ElementSpec in_turn_spec(const Dataset& dataset) const override;
  std::vector<Element> elements_of(const DealtIterator& data) override;
  std::size_t piece_of(const DealtIterator& data, int replica) const override;
  std::vector<PipelinePosition> positions_to_save() const override;
  void gather_positions();

  std::vector<PipelinePosition> positions_;  // of all workers, as they were last gathered
};

}  // namespace cairn
