// Checkpointer: saves and restores, one at a time.
//
// A save makes a cut (cut.h), has every shard write its frozen rows while training goes on, and
// writes the manifest last: before that the checkpoint does not exist. If a ps is lost on the way,
// its files are swept and the save begins anew once the ps is back. A restore compares every
// variable first, so that a checkpoint of another model changes nothing, and then has each ps read
// its rows. Where each ps has a local folder, rows that no checkpoint names any more are removed by
// the ps themselves, at each save. A chain of deltas that is as long as
// CheckpointPolicy::consolidate_after says is made full beside all that, by pieces of work between
// which saves have the disk's thread.
//   Thread  the engine's; files are touched on the disk's thread.
//   Errors  save(): InvalidArgument: no folder, or metadata that is not JSON; FailedPrecondition:
//           another run saves there; Unavailable: a ps was given up, or is lost with recovery off;
//           those of the disk. A save that fails leaves nothing in its folder.
//           restore(): NotFound, DataLoss of the manifest; FailedPrecondition: a variable has
//           another dtype or shape, or was made from another seed; InvalidArgument: a dataset
//           is not the one that the checkpoint has a position in; FailedPrecondition: a ps lacks
//           databases that it needs (ShardTables::verify_databases). Then nothing has changed.
//           Unavailable: a ps was given up on the way; DataLoss of the rows.
//   Writes  RowSources, and what ProgressBook and LossLedger are to go on from after a restore.
//   Calls   `pump` (of the scheduler) after a restore.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/checkpoint/auto_saver.h"
#include "coordinator/checkpoint/cut.h"
#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/cluster/session.h"
#include "coordinator/dispatch/checkpoint_view.h"
#include "coordinator/dispatch/shard_tables.h"
#include "coordinator/dispatch/table_lock.h"
#include "coordinator/progress/progress_book.h"
#include "coordinator/restore/restore_plan.h"
#include "rpc/loop/task.h"
#include "storage/row_encoding.h"

namespace cairn {

namespace storage {
class Consolidation;
struct FolderLock;
}  // namespace storage

class Checkpointer final : public CheckpointSaver {
 public:
  Checkpointer(const CheckpointParts& parts, CutMaker cuts, std::function<void()> pump);

  rpc::Task<std::string> save(CheckpointPolicy policy, std::string metadata) override;
  bool busy() const override { return busy_; }
  // The queue must be idle. Ends once every ps has its rows and is open.
  rpc::Task<void> restore(std::string checkpoint, RestoreOptions options);

  // Rows that no shard has come from where they came from under an earlier coordinator.
  // If it was restoring one, all ps are to be rebuilt.
  //   Errors  those of reading the manifests.
  rpc::Task<void> resume(journal::SourcesAre sources);
  // The plan of the last restore; an empty one: there was none.
  std::shared_ptr<const RestorePlan> restored_plan() const;
  // Variables that this checkpoint lacks or holds otherwise begin anew, with no warning or error.
  void expect_partial_restore();
  // The program has taken this folder already. Others are locked at their first save, and stay
  // locked until the engine goes.
  void hold_folder(std::shared_ptr<const storage::FolderLock> lock);

 private:
  rpc::Task<std::string> save_one(CheckpointPolicy policy, std::string metadata);
  std::shared_ptr<const storage::FolderLock> lock_of(const std::string& folder) const;
  rpc::Task<void> save_shards(std::shared_ptr<Cut> cut);
  rpc::Task<void> save_shard(std::shared_ptr<Cut> cut, std::size_t i, ShardClient& shard,
                             std::string folder);
  rpc::Task<void> commit(std::shared_ptr<Cut> cut, std::string name, CheckpointPolicy policy,
                         std::string metadata);
  bool may_be_delta(const CheckpointPolicy& policy) const;
  rpc::Task<void> restore_all(std::string checkpoint, RestoreOptions options);
  std::exception_ptr offer_sound(const std::exception_ptr& error,
                                 const std::string& checkpoint) const;
  rpc::Task<void> verify_databases(Ps* ps, std::shared_ptr<CheckpointView> source);
  rpc::Task<void> restore_ps(Ps* ps, std::shared_ptr<CheckpointView> source);
  rpc::Task<void> change();
  void record_sources(bool restoring);
  void go_on_from(std::shared_ptr<CheckpointView> source);
  void become_heir_of(const CheckpointView& source);
  rpc::Task<void> on_disk_thread(std::function<void()> work);
  // InvalidArgument: local_folder cannot be combined with another option of the policy.
  void verify_local_folder(const CheckpointPolicy& policy) const;
  rpc::Task<void> choose_local_rows(std::shared_ptr<Cut> cut, CheckpointPolicy policy);
  // Has the ps remove rows that no checkpoint of the folder names any more.
  rpc::Task<void> remove_local_rows(std::string folder);
  rpc::Task<void> remove_rows_on(Ps* ps, std::vector<std::string> paths, std::shared_ptr<bool> all);
  // InvalidArgument: consolidate_after cannot be combined with another option of the policy.
  static void verify_chain(const CheckpointPolicy& policy, const Disk& disk);
  void consolidate_if_due(const CheckpointPolicy& policy);
  rpc::Task<void> consolidate(std::string path, std::size_t deltas);
  rpc::Task<void> put_in_place(std::shared_ptr<storage::Consolidation> work, std::size_t deltas);

  Session& session_;
  ClusterMembers& members_;
  ShardTables& tables_;
  TableLock& lock_;
  RowSources& sources_;
  ProgressBook& progress_;
  LossLedger& losses_;
  Recorder& recorder_;
  CutMaker cuts_;
  std::function<void()> pump_;
  bool busy_ = false;
  // The newest checkpoint of this session, and how many deltas it is made of; `mark` 0: there is
  // none that the next may be a delta of.
  struct Base {
    std::uint64_t mark = 0;
    std::string path;
    std::size_t deltas = 0;
    storage::RowEncoding encoding = {};
  };
  Base base_;
  bool consolidating_ = false;
  std::vector<storage::Ancestor> ancestors_;  // of this session
  // on the folders that it saves to
  std::map<std::string, std::shared_ptr<const storage::FolderLock>> locks_;
};

}  // namespace cairn
