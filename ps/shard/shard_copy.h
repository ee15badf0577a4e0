// ShardCopy: a shard that is configured like another one, and closed, takes the other one's rows
// and follows their changes (change_log.h). Once it is opened, in another epoch, it goes on with
// the other one's lineage.
//   Thread  the shard's own.
//   Errors  of all: FailedPrecondition: the shard is open, or of another session.
#pragma once
#include "ps/shard/change_log.h"
#include "ps/shard/shard.h"
#include "ps/table/row_sums.h"

namespace cairn::ps {

class ShardCopy {
 public:
  explicit ShardCopy(Shard& shard) : shard_(shard) {}

  // The shard takes the books, and all of its rows go to their initial values: those of the other
  // one that differ are to be put.
  //   Errors  also FailedPrecondition: the shard cannot hold copies; NotFound: a table that is not
  //           here; InvalidArgument: of the ledger. Nothing has changed then.
  void begin(const ShardBooks& books);
  //   Errors  also NotFound; those of Table::put().
  void put(TableId table, const storage::StoredRows& rows);
  // This is what the other one has told its log: a push, or a slice, in one piece; or the sum of a
  // round.
  //   Errors  also those of the push; nothing has changed then.
  void replay(const PushRequest& push);
  void replay(const RoundRequest& round, const PushPiece& sum);
  // The other one's rows as it has them at this place of its log. A table that is not here yet is
  // not compared.
  //   Errors  also those of compare() (ps/table/row_sums.h).
  void compare(TableId table, const SummedRows& theirs);

  // The shares of rounds that the shard keeps, each as the change that its push was. They use the
  // shard's memory: until its next change.
  std::vector<RowChange> shares() const;
  // One of them.
  RowChange share(const StepContext& step, std::uint32_t slice, const Share& kept) const;

  // All tables, whether the shard is open or not, by variable and part.
  std::vector<std::pair<TableId, Table*>> tables() const;

 private:
  void verify(std::uint64_t session) const;

  Shard& shard_;
};

}  // namespace cairn::ps
