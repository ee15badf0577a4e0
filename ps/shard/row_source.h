// RowSource: rows of a shard's tables that are elsewhere: on a disk, or in another device's memory.
//
//   A shard asks it which rows of a request are elsewhere, before it reads or changes any of them,
//   and has it fetch those; meanwhile the request waits (row_waits.h). Without a source all rows
//   are always here, and no request ever waits.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "ps/table/table.h"
#include "storage/row_block.h"

namespace cairn::ps {

enum class Access : std::uint8_t { kRead, kUpdate };

// Rows of a table that a request reads or changes.
struct WantedRows {
  Table* table = nullptr;
  std::span<const std::int64_t> rows;  // local; may be unsorted, and name a row twice
  bool all = false;                    // every row of the table, whatever `rows` says
};

// Thread: the shard's own.
class RowSource {
 public:
  // Adds to `elsewhere` the local numbers of those of the wanted rows that are not in the table's
  // memory, though they have other values than their initial ones. The shard asks for every pull
  // and push, so that this must be a look into memory. The table is not changed.
  virtual void find_elsewhere(const WantedRows& wanted, Access access,
                              std::vector<std::int64_t>& elsewhere) = 0;

  // Begins to fetch these rows, ascending and distinct, and calls `fetched` once, later: with the
  // rows, which the shard puts into the table, or with what went wrong. Until then it says that
  // they are elsewhere, and none of them changes; afterwards they stay in the table's memory until
  // settle() says that they may leave. The shard does not ask for a
  // row that is being fetched. It may forget a fetch, when its tables begin anew, and even end
  // before it: `fetched` does nothing then, and the table is not to be used any more.
  using Fetched =
      std::function<void(const std::vector<storage::StoredRows>& rows, std::exception_ptr error)>;
  virtual void fetch(Table& table, const std::vector<std::int64_t>& rows, Fetched fetched) = 0;

  // Every row of the table has its initial value again, or the table goes: none of its rows is
  // elsewhere any more.
  virtual void reset(Table& table) = 0;

  // Requests have had their turn: those rows that no request has used, made or fetched since
  // `oldest`, a moment() of before, may leave memory now, and no others.
  using Moment = std::uint32_t;  // of a count that goes round
  virtual Moment moment() const { return 0; }
  virtual void settle(Moment /*oldest*/) {}

 protected:
  ~RowSource() = default;
};

}  // namespace cairn::ps
