// ShardClient: the coordinator's side of one shard of a ps: its tables, fences, cuts and restores.
//   Thread  the engine's.
//   Errors  Unavailable once the connection is lost; else what the shard reports.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/incarnation.h"
#include "core/rows/layout.h"
#include "core/rows/row_move.h"
#include "core/rows/shard_version.h"
#include "rpc/net/connection.h"
#include "storage/row_encoding.h"

namespace cairn {

// Half-open ranges of closure sequence numbers, ascending, above a watermark below which all are
// in.
struct AppliedClosures {
  std::uint64_t low_watermark = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  bool contains(std::uint64_t closure) const;
  void add(std::uint64_t closure);
  // All below are in.
  void raise(std::uint64_t watermark);
  void merge(const AppliedClosures& other);
};

// A closure that is applied with a round, and the layout by which its last run was sent.
struct AppliedMember {
  std::uint64_t closure = 0, sent_layout = 0;
};

struct ShardMark {
  ShardVersion version;
  AppliedClosures applied;
  bool delta = false;
};
// As ps::MarkOptions.
struct CutBase {
  std::uint64_t mark = 0;  // of the checkpoint that this one may be a delta of; 0: of none
  bool track = false;
  bool passing = false;
};

struct SavedFile {
  std::string name;
  std::uint64_t bytes = 0, checksum = 0;
};
struct ShardSaved {
  std::vector<SavedFile> files;
  std::uint64_t rows = 0, bytes = 0;
  std::vector<std::uint64_t> database_rows;  // in the order in which the files name databases
};

struct ShardRestored {
  std::uint64_t rows = 0;
  bool later = false;  // they are still to come
};

// How a backup of a shard stands, as its primary tells.
struct BackupState {
  ShardReplica backup;     // without its address
  bool caught_up = false;  // it has all rows, and no push is answered any more that it lacks
  std::string trouble;     // why it is sent nothing any more; empty: nothing is wrong
  std::uint64_t behind = 0, row_bytes = 0;
};
struct BackupNews {
  std::uint64_t version = 0;
  std::vector<BackupState> backups;
};

class ShardClient {
 public:
  ShardClient(std::unique_ptr<rpc::Connection> connection, ShardId shard);
  ~ShardClient();

  // Sends the shard's tables of `layout` with ids in [first, last).
  rpc::Task<ShardVersion> configure(std::uint64_t session, std::shared_ptr<const Layout> layout,
                                    VariableId first, VariableId last);
  rpc::Task<void> open();
  rpc::Task<void> announce(std::uint64_t session, std::uint64_t closures_below,
                           std::uint64_t settled_below);
  // The closures that have pushed there, each from its first push on.
  rpc::Task<AppliedClosures> applied();
  rpc::Task<void> fence(std::uint64_t session, LaneIncarnation newest,
                        std::vector<LaneIncarnation> alive);
  // Has the shard apply what the members have pushed for the round, as one sum in their order; safe
  // to repeat.
  //   Errors  Aborted: shares of theirs are gone there; all members are to run again.
  rpc::Task<void> apply_round(std::uint64_t session, std::uint64_t round,
                              std::vector<AppliedMember> members);
  rpc::Task<ShardMark> mark(std::uint64_t attempt, CutBase base);
  rpc::Task<ShardSaved> save(std::uint64_t attempt, std::string folder,
                             storage::ChosenEncoding encoding = {});
  rpc::Task<void> drop_mark(std::uint64_t attempt);
  // With `on_demand` the shard may be opened when this ends. If rows are still to come then,
  // await_restore() ends when all are there.   Errors  of that: they do not come.
  // `moves`: by name, those of the variables that do not simply take the rows of the checkpoint's
  // variable of their name.
  rpc::Task<ShardRestored> restore(std::string folder, std::vector<std::string> databases,
                                   AppliedClosures applied, std::vector<VariableId> variables,
                                   std::map<std::string, RowMove> moves = {},
                                   bool on_demand = false);
  rpc::Task<void> await_restore();
  // These, and no others, are the backups of the shard, which is open. From then on it answers only
  // while it hears of the coordinator or of them, since another one may become the primary. With
  // `shares` they get those of rounds as well, so that rounds outlive the primary.
  //   Errors  FailedPrecondition: the shard's rows cannot be copied; the message says why.
  rpc::Task<void> set_backups(std::uint64_t session, std::vector<ShardReplica> backups,
                              bool shares);
  // How they stand, once that is not version `seen` any more, or after some seconds.
  rpc::Task<BackupNews> await_backups(std::uint64_t session, std::uint64_t seen);
  // For each of these databases in local folders why it is not on the ps's machine; empty: it is.
  rpc::Task<std::vector<std::string>> find_databases(std::vector<std::string> databases);
  // Removes folders of rows from that machine, where they are there.
  rpc::Task<void> remove_rows(std::vector<std::string> folders);
  // All rows at their initial values, no closure applied, closed: as if its tables had just been
  // made. With `variables`: those of them, and what was applied stays so.
  rpc::Task<void> begin_anew(std::vector<VariableId> variables = {});
  ShardId shard() const { return shard_; }
  void set_shard(ShardId shard) { shard_ = shard; }  // before the first call about tables
  rpc::Connection& connection() { return *connection_; }

 private:
  struct Stub;
  std::unique_ptr<rpc::Connection> connection_;
  std::unique_ptr<Stub> stub_;
  ShardId shard_;
};

}  // namespace cairn
