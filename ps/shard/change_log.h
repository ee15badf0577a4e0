// ChangeLog: what a shard tells of each change of its rows, so that copies on other ps can follow.
//
// A copy that starts from the rows and books (ShardBooks) of one moment, and replays the changes in
// the order in which they are told, has the same rows and knows the same pushes as applied.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/incarnation.h"
#include "ps/shard/applied.h"
#include "ps/shard/requests.h"
#include "ps/shard/rounds.h"

namespace cairn::ps {

struct LoggedUpdate {
  const UpdateHeader* header = nullptr;  // its count of rows may be another: that of `ids` is right
  std::span<const std::int64_t> ids;
  std::span<const std::byte> values;
};

// All updates of a push, of a slice of one, or of a round's sum, in the order in which they are
// applied. A push whose step names a round is a share of it, which is kept and changes no rows yet.
struct RowChange {
  StepContext step;  // of the push
  std::uint32_t slice = 0;
  const RoundRequest* round = nullptr;  // whose sum it is, in place of a push
  RowEncoding encoding = RowEncoding::kRaw;
  std::vector<LoggedUpdate> updates;
  std::shared_ptr<const void> kept = nullptr;  // memory that the updates use
};

class ChangeLog {
 public:
  // False: nobody follows, and changed() need not be called.
  virtual bool wanted() const = 0;
  // Those who follow want shares of rounds as well.
  virtual bool wants_shares() const { return false; }
  // The rows are about to change; nothing comes between. The values may be replaced by copies of
  // them (RowChange::kept), which are then what is applied: where they lie now, others may write to
  // them.
  //   Errors  those of memory: the change is not made.
  virtual void changed(RowChange& change) = 0;
  // As Shard::announce().
  virtual void announced(std::uint64_t closures_below, std::uint64_t settled_below) = 0;
  // The rows are other ones from here on, which do not follow from those before.
  virtual void begins_anew() = 0;

 protected:
  ~ChangeLog() = default;
};

// The rest of a shard's state, besides its rows and the shares of rounds.
struct ShardBooks {
  struct OfTable {
    TableId id;
    std::int64_t updates = 0;   // Table::updates()
    std::uint64_t written = 0;  // Table::written()
  };
  std::uint64_t session = 0;
  Lineage lineage;
  std::uint64_t counter = 0;
  std::uint64_t first_layout = 0;  // what was sent by an earlier layout is refused
  std::uint64_t step = 0;          // the newest that was applied
  PushLedger ledger;
  std::vector<OfTable> tables;
  RoundBooks rounds;
  bool with_shares = false;  // shares of rounds follow, as changes
};

}  // namespace cairn::ps
