// BackupLink: sends one backup of a shard all rows, and each change of them, in the order of the
// log.
//
// The link keeps what has still to be sent, and sends as much at a time as the connection has
// credit for. Rows that are copied go between the changes, at most two blocks ahead of what was
// sent. A link that fails sends nothing any more and says why; the next one begins from the start.
//   Thread  the shard's own.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/rows/layout.h"
#include "ps/replica/log_record.h"
#include "ps/replica/replication_options.h"
#include "ps/replica/row_copier.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/task.h"
#include "rpc/loop/task_group.h"
#include "rpc/net/network.h"
#include "rpc/server/last_heard.h"
#include "rpc/server/signal.h"

namespace cairn::ps {

// Whether backups get the shares of rounds as well; else only the sums, as rounds are applied.
enum class Shares : std::uint8_t { kNotCopied, kCopied };

// Where the records go, and how: what all links of a ps share.
struct LinkParts {
  // A shard that reaches no other ps, and can have no backups.
  LinkParts(rpc::Reactor& own) : reactor(own) {}  // NOLINT(google-explicit-constructor)
  LinkParts(rpc::Reactor& own, rpc::Network& all, rpc::Hello greeting, ReplicationOptions how,
            std::shared_ptr<const rpc::LastHeard> of_coordinator)
      : reactor(own),
        network(&all),
        hello(std::move(greeting)),
        options(how),
        coordinator(std::move(of_coordinator)) {}

  rpc::Reactor& reactor;
  rpc::Network* network = nullptr;
  rpc::Hello hello;  // of this ps; session and endpoint are filled in
  ReplicationOptions options;
  // The coordinator that this ps works for.
  std::shared_ptr<const rpc::LastHeard> coordinator = std::make_shared<rpc::LastHeard>();
};

class BackupLink {
 public:
  // `stream` is another one for each link. `changed` is called when one of the answers below has
  // become another.
  BackupLink(const LinkParts& parts, Shard& shard, ShardReplica backup, std::uint64_t stream,
             std::function<void()> changed);
  ~BackupLink();

  // Begins with the shard's books as they are now, and the shares of rounds where those are copied;
  // what is appended comes behind them. The log's position is `position`.
  void begin(std::uint64_t position, Shares shares = Shares::kNotCopied);
  // `position` is that of the log after the record.
  void append(std::shared_ptr<LogRecord> record, std::uint64_t position);

  const ShardReplica& backup() const { return backup_; }
  // The position up to which changes are to be answered: what the backup has acknowledged, once it
  // has all rows; until then what was sent to it, so that it does not fall behind for ever.
  std::uint64_t passed() const { return joined_at_ ? acknowledged_.position : sent_; }
  // It has all rows, and every change that was answered. Once true it stays so.
  bool caught_up() const { return joined_at_ && acknowledged_.position >= *joined_at_; }
  std::uint64_t acknowledged() const { return acknowledged_.position; }
  // Whether all rows are before whatever is appended now.
  bool is_copied() const { return !copier_; }
  // The newest record that it has acknowledged was handed over at this time: up to then, at least,
  // it followed this primary.
  TimePoint followed_at() const { return acknowledged_.handed_over; }
  const std::string& trouble() const { return trouble_; }
  std::uint64_t row_bytes() const { return row_bytes_; }
  // Looks whether it has been silent for too long.
  void look(TimePoint now);

 private:
  struct Item {
    std::shared_ptr<LogRecord> record;
    std::uint64_t position = 0;
    bool block = false;     // of rows, or what follows the last one
    bool complete = false;  // that
    TimePoint since;
  };

  rpc::Task<void> run();
  rpc::Task<void> send(Item item);
  void copy_more();
  void push(Item item);
  void took(const Item& item);
  void fail(const std::string& why);

  const LinkParts& parts_;
  Shard& shard_;
  const ShardReplica backup_;
  const std::function<void()> changed_;
  const std::uint64_t stream_;
  std::unique_ptr<rpc::Connection> connection_;
  std::optional<RowCopier> copier_;
  std::deque<Item> unsent_;
  std::deque<TimePoint> unacknowledged_;  // since when, of those that were sent
  std::size_t unsent_bytes_ = 0, unsent_blocks_ = 0;
  std::uint64_t next_ = 0;  // record
  std::uint64_t position_ = 0, sent_ = 0, row_bytes_ = 0;
  struct Acknowledged {
    std::uint64_t position = 0;
    TimePoint handed_over = TimePoint::min();  // none yet
  };
  Acknowledged acknowledged_;               // the newest record
  std::optional<std::uint64_t> joined_at_;  // the position from which on it is waited for
  std::string trouble_;
  rpc::Signal more_;
  rpc::TaskGroup tasks_;  // last: its tasks use all of the above
};

}  // namespace cairn::ps
