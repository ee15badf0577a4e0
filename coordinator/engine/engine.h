// Engine: the coordinator's half that lives on a loop. It composes the parts below, connects them
// to the cluster at the start, and is what the rest of the coordinator talks to.
//
//   Session          what all parts share; ClusterMembers: the tasks, and how each stands
//   ClosureScheduler       queue -> lane -> result; DispatchGate: which closures may be sent
//   Announcer        announces to shards which closures there are
//   ShardTables      the layout's way to the shards; TableLock: one at a time
//   Workers, PsGroup connect, watch, give up, bring back; LaneFence shuts out what was lost
//   ReplicaKeeper    the backups of shards
//   Checkpointer     cut, save, restore; AutoSaver: when
//   ProgressBook     how far the run has come; LossLedger: what was lost
//   Recorder         writes into the journal, if there is one, what all of these do
//   StatusReporter   reports for people
//
// Each part is given those before it in the list of members, and knows none after it. Where one has
// to wake a later one (a layout is synced: pump; a save is due), it is given that one call.
//   Thread  the reactor's, but for what says "any thread".
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/checkpoint/auto_saver.h"
#include "coordinator/checkpoint/checkpointer.h"
#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/cluster/session.h"
#include "coordinator/dispatch/announcer.h"
#include "coordinator/dispatch/checkpoint_view.h"
#include "coordinator/dispatch/closure_scheduler.h"
#include "coordinator/dispatch/consistency_policy.h"
#include "coordinator/dispatch/dispatch_gate.h"
#include "coordinator/dispatch/function_registry.h"
#include "coordinator/dispatch/lane_fence.h"
#include "coordinator/dispatch/outcomes.h"
#include "coordinator/dispatch/shard_tables.h"
#include "coordinator/dispatch/table_lock.h"
#include "coordinator/engine/ps_group.h"
#include "coordinator/engine/replica_keeper.h"
#include "coordinator/engine/status_reporter.h"
#include "coordinator/engine/workers.h"
#include "coordinator/progress/progress_book.h"

namespace cairn {

class Engine {
 public:
  using Parts = EngineParts;
  Engine(Parts parts, EngineOptions options, std::shared_ptr<Waiting> waiting);
  ~Engine();

  // Connects to every task, and runs to its end what an earlier coordinator had sent.
  //   Errors  Unavailable after options.start.timeout, naming who is missing. FailedPrecondition:
  //           the journal's run had other ps or shards, or open closures of another consistency.
  rpc::Task<void> start();
  // Disconnects from all tasks. Running closures finish on their workers; results are dropped.
  void stop();

  // ---- any thread ----
  ClosureQueue& queue() { return session_.queue; }
  VariableRegistry& registry() { return tables_.registry(); }  // after start()
  std::shared_ptr<const RegisteredFunction> register_function(
      std::shared_ptr<const ConcreteFunction> concrete, const std::string& name) {
    return functions_.add(std::move(concrete), name, registry());
  }
  // of the whole cluster; after start()
  std::size_t lane_count() const { return members_.lanes.size(); }
  // The number of each lane's worker; after start().
  std::vector<std::int64_t> workers_of_lanes() const;
  EngineStats stats() const { return status_.stats(); }
  // As of at most 200 ms ago; before start() has ended, too.
  std::string status_json() const { return status_.json(); }
  // Sets the part of status_json() that the program says of itself.
  void set_program_status(Json said) { status_.set_program(std::move(said)); }
  // tasks that start() waits for, each with what is wrong, as of as long ago
  std::vector<MissingTask> missing() const { return status_.missing(); }
  const EngineOptions& options() const { return session_.options; }
  // The run that this coordinator goes on with, after start(); none: it began one.
  const std::optional<ResumedRun>& resumed() const { return recorder_.resumed(); }
  // True if the program was asked to end. Calling this also records that the program looks for it.
  bool stop_requested() {
    program_.looks_for_stop = true;
    return program_.stop_requested;
  }
  bool looks_for_stop() const { return program_.looks_for_stop; }
  // FailedPrecondition: the program never looked whether it is to end.
  void request_stop();
  // Counts the program's calls of Model::fit(), from 1 on.
  int count_fit() { return ++program_.fits; }

  // ---- the loop's ----
  void log_waits() { status_.log_waits(); }  // logs what it waits for
  void pump() { scheduler_.pump(); }         // sends what can be sent
  std::shared_ptr<const PerWorkerDataset> add_dataset(
      std::string name, std::vector<std::vector<std::byte>> descriptions, ElementSpec spec,
      bool shared);
  // The next dataset of this name begins at its beginning, wherever an earlier one stood.
  void begin_anew(const std::string& dataset) { books_.progress.begin_anew(dataset); }
  // How many of its elements have been committed, from its beginning on.
  std::uint64_t elements_committed(const PerWorkerDataset& dataset) const {
    return books_.progress.elements_committed(dataset);
  }
  // Ends once a successor will know this text. Closures that come later are sent after it is
  // written. Without a journal nothing is kept.
  //   Errors  those of the journal.
  rpc::Task<void> note(std::string name, std::string text);
  // One consistent cut; the name of the checkpoint. One at a time, later calls wait.
  rpc::Task<std::string> save(CheckpointPolicy policy, std::string metadata) {
    return checkpointer_.save(std::move(policy), std::move(metadata));
  }
  // Variables (also those made later), step, dataset positions and, in the same session, closures
  // from a checkpoint. The queue must be idle. FailedPrecondition: another dtype or shape.
  rpc::Task<void> restore(std::string checkpoint, RestoreOptions options = {}) {
    return checkpointer_.restore(std::move(checkpoint), options);
  }
  // The variables of the checkpoint that was restored last; empty: none was.
  std::shared_ptr<const RestorePlan> restored_plan() const { return checkpointer_.restored_plan(); }
  // Variables that this checkpoint lacks or holds otherwise begin anew, with no warning or error.
  void expect_partial_restore() { checkpointer_.expect_partial_restore(); }
  // Saves by itself from now on.
  void save_by(CheckpointPolicy policy, std::string metadata) {
    auto_saver_.begin(std::move(policy), std::move(metadata));
  }
  void set_save_metadata(std::string metadata) { auto_saver_.set_metadata(std::move(metadata)); }
  void hold_folder(std::shared_ptr<const storage::FolderLock> lock) {
    checkpointer_.hold_folder(std::move(lock));
  }
  // One now, under that policy, for all who ask before it has begun; it does not end with them.
  //   Errors  FailedPrecondition: there is no policy. Those of save().
  kj::Promise<std::string> save_by_policy() { return auto_saver_.save_now(); }

 private:
  // The program, as far as it is known.
  struct Program {
    std::atomic<bool> looks_for_stop{false}, stop_requested{false};
    std::atomic<int> fits{0};
  };

  CheckpointParts checkpoint_parts();

  // ---- the start ----
  void list_members();
  rpc::Task<void> connect_everybody();
  void number_members();
  rpc::Task<void> watch_ps();
  rpc::Task<void> show_life();
  // ---- with what an earlier coordinator has left ----
  void verify_found() const;
  Layout found_layout(const std::vector<ShardLayout>& connected) const;
  rpc::Task<void> resume_books();
  using FoundFunctions = std::map<std::uint32_t, std::shared_ptr<const RegisteredFunction>>;
  FoundFunctions found_functions();
  std::vector<std::shared_ptr<Closure>> open_closures(const FoundFunctions& functions);
  std::vector<std::uint64_t> adopt(const std::vector<UnrecordedClosure>& unrecorded);
  rpc::Task<void> finish_resumed();

  // In the order in which the parts lean on one another; the last goes first.
  Session session_;
  FunctionRegistry functions_;
  ClusterMembers members_;
  RowSources sources_;
  TableLock table_lock_;
  struct Books {
    ProgressBook progress;
    LossLedger losses;
  };
  Books books_;
  Recorder recorder_;
  Announcer announcer_;
  ShardTables tables_;
  LaneFence fence_;
  Outcomes outcomes_;
  std::unique_ptr<ConsistencyPolicy> policy_;
  DispatchGate gate_;
  ClosureScheduler scheduler_;
  Checkpointer checkpointer_;
  AutoSaver auto_saver_;
  Workers workers_;
  struct Servers {
    PsGroup group;
    ReplicaKeeper replicas;
  };
  Servers ps_;
  StatusReporter status_;
  Program program_;
};

}  // namespace cairn
