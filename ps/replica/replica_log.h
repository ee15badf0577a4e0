// ReplicaLog: a primary's log of what happens to its rows, and the backups that follow it.
//
// The coordinator says which backups there are. To each of them all rows are copied while pulls and
// pushes go on, and every change in its order. From the moment at which a backup has all rows no
// change is answered before it has that too, and so it stays, whatever becomes of the backup, until
// the coordinator takes it out: only the coordinator knows who may become the primary. Backups that
// have caught up compare their rows with the primary's, a few at a time; one that has other rows is
// in trouble.
//   Thread  the shard's own.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/rows/layout.h"
#include "ps/replica/backup_link.h"
#include "ps/replica/row_summer.h"
#include "ps/shard/change_log.h"
#include "rpc/loop/task_group.h"
#include "rpc/server/signal.h"

namespace cairn::ps {

class Shard;

// Whether a primary has to make sure, before it answers, that it still is the primary.
enum class Lease : std::uint8_t { kNone, kLeased };

class ReplicaLog final : public ChangeLog {
 public:
  explicit ReplicaLog(LinkParts parts);
  ~ReplicaLog();

  // ---- told by the shard ----
  bool wanted() const override { return !links_.empty(); }
  bool wants_shares() const override { return shares_ == Shares::kCopied; }
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
  // The lease has run out: another primary may be at work, and neither a pull nor a push may be
  // answered before confirm() has ended.
  //   Cost  a comparison, where there is no lease.
  bool is_cut_off() const { return leased_ && !is_followed(); }
  // Asks the backups whether they still follow.
  //   Errors  Unavailable: for as long as a lease neither they nor the coordinator were heard.
  rpc::Task<void> confirm();

  // ---- for the coordinator ----
  // These are the backups of `shard`, and no others. One that is known, by process and place, and
  // is not in trouble, goes on. One that is in trouble and had caught up stays waited for, until
  // the coordinator has taken it out: it may become the primary. With kLeased one of them, or of
  // those to come, may replace this primary.
  //   Errors  FailedPrecondition: the shard is not open, or its rows cannot be copied.
  void set_backups(Shard& shard, const std::vector<ShardReplica>& backups,
                   Lease lease = Lease::kNone, Shares shares = Shares::kNotCopied);
  // The shard is in another epoch, or session.
  void end_lease() { leased_ = false; }
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
  bool is_followed() const;
  TimePoint heard_at() const;
  void probe();
  void looked_at();
  void go_on();
  void refuse_all(const char* why);
  void stop_with_reactor();
  rpc::Task<void> watch();
  std::size_t followers() const;  // that have caught up
  void append_sums(const RowSummer::Slice& slice);
  rpc::Task<void> compare(const Shard& shard);

  const LinkParts parts_;
  std::vector<std::unique_ptr<BackupLink>> links_;
  std::uint64_t position_ = 0;  // records so far
  std::uint64_t streams_ = 0, version_ = 1;
  std::vector<std::pair<bool, bool>> told_;  // of each link: caught up, in trouble
  std::deque<Waiter> waiters_;               // by position
  rpc::Signal news_, acknowledged_;
  bool watching_ = false, comparing_ = false, leased_ = false;
  Shares shares_ = Shares::kNotCopied;
  TimePoint named_at_;        // when the coordinator last named the backups
  std::uint64_t probed_ = 0;  // the position of the last probe
  struct Ending;
  std::weak_ptr<Ending> ending_;  // the reactor's, which alone keeps it
  rpc::TaskGroup tasks_;          // last
};

}  // namespace cairn::ps
