// ReplicaLog: a primary's log of what happens to its rows, and the backups that follow it.
//
// The coordinator says which backups there are. To each of them all rows are copied while pulls and
// pushes go on, and every change in its order. From the moment at which a backup has all rows no
// change is answered before it has that too, and so it stays, whatever becomes of the backup, until
// the coordinator takes it out: only the coordinator knows who may become the primary.
//   Thread  the shard's own.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/rows/layout.h"
#include "ps/replica/backup_link.h"
#include "ps/shard/change_log.h"
#include "rpc/loop/task_group.h"
#include "rpc/server/signal.h"

namespace cairn::ps {

class Shard;

class ReplicaLog final : public ChangeLog {
 public:
  explicit ReplicaLog(LinkParts parts);
  ~ReplicaLog();

  // ---- told by the shard ----
  bool wanted() const override { return !links_.empty(); }
  void changed(RowChange& change) override;
  void announced(std::uint64_t closures_below, std::uint64_t settled_below) override;
  // All backups are dropped: the coordinator names them again.
  void begins_anew() override;

  // ---- for the answers ----
  // Whether an answer about the rows as they are now has to wait for a backup.
  bool must_wait() const { return passed() < position_; }
  // Resolves once every backup that is waited for has all changes of up to now.
  //   Errors  Unavailable: the rows begin anew.
  kj::Promise<void> everywhere();

  // ---- for the coordinator ----
  // These are the backups of `shard`, and no others. One that is known, by process and place, and
  // is not in trouble, goes on.
  //   Errors  FailedPrecondition: the shard is not open, or its rows cannot be copied.
  void set_backups(Shard& shard, const std::vector<ShardReplica>& backups);
  struct State {
    ShardReplica backup;
    bool caught_up = false;
    std::string trouble;
    std::uint64_t behind = 0, row_bytes = 0;
  };
  std::vector<State> states() const;
  // Another one whenever a backup has caught up, is in trouble, or is another one.
  std::uint64_t version() const { return version_; }
  kj::Promise<void> next_version() { return news_.wait(); }

  // Nothing is sent any more, and nobody waits. Called by itself where the reactor ends first.
  void stop();

 private:
  struct Waiter {
    std::uint64_t position;
    kj::Own<kj::PromiseFulfiller<void>> done;
  };

  void append(std::shared_ptr<LogRecord> record);
  std::uint64_t passed() const;
  void looked_at();
  void go_on();
  void refuse_all(const char* why);
  void stop_with_reactor();
  rpc::Task<void> watch();

  const LinkParts parts_;
  std::vector<std::unique_ptr<BackupLink>> links_;
  std::uint64_t position_ = 0;  // records so far
  std::uint64_t streams_ = 0, version_ = 1;
  std::vector<std::pair<bool, bool>> told_;  // of each link: caught up, in trouble
  std::deque<Waiter> waiters_;               // by position
  rpc::Signal news_;
  bool watching_ = false;
  struct Ending;
  std::shared_ptr<Ending> ending_;  // shared with the reactor
  rpc::TaskGroup tasks_;            // last
};

}  // namespace cairn::ps
