// ShardTables: the layout's way to the shards. New variables become tables, and tables get the rows
// of a checkpoint.
//
// The registry makes a new layout for each new variable; sync() brings the newest to every shard.
// Lanes go by the layout that all shards have: the synced one. A shard is configured with its
// tables while it is closed, gets its rows, and is opened last, so that no peer sees half a model.
//   Thread  the engine's, but for registry().
//   Errors  Unavailable: the ps was lost. FailedPrecondition: a variable has another dtype or shape
//           in the checkpoint. DataLoss, NotFound: the checkpoint is damaged; the text says how to
//           find out more.
//   Lock    sync() takes the TableLock. Callers of configure(), restore(), restore_new()
//           and rebuild() hold it: PsGroup as it attaches one, Checkpointer as it restores.
//   Calls   `pump` (of the scheduler) once a layout is synced; fails the queue if it cannot be.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/session.h"
#include "coordinator/cluster/variable_registry.h"
#include "coordinator/dispatch/checkpoint_view.h"
#include "coordinator/dispatch/table_lock.h"
#include "coordinator/journal/config_keeper.h"
#include "coordinator/journal/recorder.h"
#include "rpc/loop/task.h"

namespace cairn {

class ShardTables {
 public:
  ShardTables(Session& session, ClusterMembers& members, RowSources& sources, TableLock& lock,
              Recorder& recorder, std::function<void()> pump)
      : session_(session),
        members_(members),
        sources_(sources),
        lock_(lock),
        recorder_(recorder),
        config_(session),
        pump_(std::move(pump)) {}

  // Once, when all ps are connected, before anything else here is called.
  void begin(std::vector<ShardLayout> shards);
  // The same with the layout of an earlier coordinator of the session, which the shards have.
  void resume(const Layout& found);
  VariableRegistry& registry() { return *registry_; }
  ConfigKeeper& config() { return config_; }
  const ConfigKeeper& config() const { return config_; }

  // ---- the synced layout ----
  // Do all shards have the tables of this layout version?
  bool have(std::uint64_t layout) const { return !resync_ && layout <= synced_version_; }
  const std::shared_ptr<const Layout>& synced() const { return synced_; }
  std::uint64_t synced_version() const { return synced_version_; }
  // Begins to bring the newest layout to the shards, unless the lock is held or a ps is away: what
  // mends that pumps, and the scheduler asks again.
  void sync();
  // Waits until the shards have every variable that exists at the time of the call, including those
  // that no closure has used yet.
  //   Errors  Unavailable: a ps that is away was given up. Whatever keeps the shards from taking
  //           the variables, such as a damaged checkpoint that was to give them their rows.
  rpc::Task<void> reach_newest();
  // One ps has this layout. Lanes go by it once all have, and the others have all but tables that
  // are newer than the last sync.
  void attached(std::shared_ptr<const Layout> layout);

  // FailedPrecondition: a hashed variable of the checkpoint holds ids that are no rows of the dense
  // one of `made` that is to take them. Reads that variable, on the disk's thread.
  rpc::Task<void> verify_ids(std::shared_ptr<const CheckpointView> source,
                             std::vector<ProgramVariable> made);

  // ---- one ps ----
  // Sends its shards their tables from variable `first` on, first the backups and then the
  // primaries, and closes them. The layout is kept first.
  rpc::Task<void> configure(Ps* ps, std::shared_ptr<const Layout> layout, VariableId first);
  // Resolves once the newest layout, which it returns, is durable. Only then may shards be
  // configured by it, and primaries be told about their backups.
  rpc::Task<std::shared_ptr<const Layout>> keep_layout();
  // This layout is kept, and says other things of backups alone.
  void backups_changed(std::shared_ptr<const Layout> layout);
  // Variables that no source has rows for keep theirs, or begin anew.
  enum class Rest : std::uint8_t { kAsItIs, kBeginsAnew };
  // Asks the ps whether it has the databases in local folders that restore() would have it read.
  //   Errors  FailedPrecondition: one is not on its machine; names it, who wrote it, and the cure.
  rpc::Task<void> verify_databases(Ps* ps, std::shared_ptr<const Layout> layout, VariableId first,
                                   std::vector<std::shared_ptr<CheckpointView>> sources);
  // Each variable from `first` on takes its rows from the first of the sources that has rows for
  // it. A source may be null.
  rpc::Task<void> restore(Ps* ps, std::shared_ptr<const Layout> layout, VariableId first,
                          std::vector<std::shared_ptr<CheckpointView>> sources,
                          Rest rest = Rest::kAsItIs);
  // Once its shards are open: notes when rows that it restores on demand are all there. If they do
  // not come, the queue fails with their error.
  void follow_restore(Ps* ps);
  // Only variables that no lane knows of yet. What merely got slots keeps its rows.
  rpc::Task<void> restore_new(Ps* ps, std::shared_ptr<const Layout> layout);
  // All rows of the shards that need them, into processes that may be new to them.
  rpc::Task<void> rebuild(Ps* ps, std::shared_ptr<const Layout> layout,
                          std::shared_ptr<CheckpointView> newest);

 private:
  static std::vector<VariableId> variables_on(const Layout& layout, ShardId shard,
                                              VariableId first);
  rpc::Task<void> sync_all();
  rpc::Task<void> forget_backups(ShardId shard);
  std::vector<ProgramVariable> made_since(const Layout& layout) const;
  rpc::Task<void> verify_restorable(std::shared_ptr<const Layout> layout);
  rpc::Task<void> restore_from(Ps* ps, std::size_t shard, std::shared_ptr<const Layout> layout,
                               VariableId first,
                               std::vector<std::shared_ptr<CheckpointView>> sources, Rest rest);
  rpc::Task<void> rebuild_shard(Ps* ps, std::size_t shard, std::shared_ptr<const Layout> layout,
                                std::vector<std::shared_ptr<CheckpointView>> sources);
  rpc::Task<void> restore_variables(Ps* ps, std::size_t shard,
                                    std::shared_ptr<CheckpointView> source,
                                    std::shared_ptr<const Layout> layout,
                                    std::vector<VariableId> wanted);
  rpc::Task<void> restore_shard(Ps* ps, std::size_t shard, std::shared_ptr<CheckpointView> source,
                                std::vector<std::string> databases, std::vector<VariableId> wanted,
                                std::map<std::string, RowMove> moves);
  rpc::Task<void> await_restore(Ps* ps);

  Session& session_;
  ClusterMembers& members_;
  RowSources& sources_;
  TableLock& lock_;
  Recorder& recorder_;
  ConfigKeeper config_;
  std::function<void()> pump_;
  std::unique_ptr<VariableRegistry> registry_;
  std::uint64_t synced_version_ = 0;  // of synced_: asked for each closure
  std::shared_ptr<const Layout> synced_;
  bool resync_ = false;              // a ps has tables that others may lack
  bool keeping_ = false;             // a layout is being kept
  std::exception_ptr sync_failure_;  // of the last sync; not that a ps was lost
};

}  // namespace cairn
