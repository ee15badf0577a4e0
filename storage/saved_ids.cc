#include "storage/saved_ids.h"

#include <limits>

#include "core/base/error.h"
#include "storage/database_place.h"
#include "storage/range_read.h"
#include "storage/superseded_rows.h"

namespace cairn::storage {
namespace {

// So much is read at a time.
constexpr std::size_t kIdBatchBytes = std::size_t{1} << 20;

}  // namespace

void verify_ids(RowStore& store, const std::string& folder,
                const std::vector<std::string>& databases, const WantedIds& wanted) {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = kEnd, outside = 0;
  SupersededRows superseded;
  for (const std::string& name : databases) {
    verify_database_name(name);
    superseded.look_into(*store.open(place_of(folder, name)), wanted.saved, {wanted.rows, kEnd});
  }
  for (std::size_t number = 0; number < databases.size(); ++number) {
    const auto reader = store.open(place_of(folder, databases[number]));
    RangeRead range(*reader, wanted.saved, {wanted.rows, kEnd}, &superseded, number);
    if (range.tables().empty()) continue;
    std::vector<StoredRows> blocks;
    for (bool more = true; more; blocks.clear()) {
      more = range.read(blocks, kIdBatchBytes);
      for (const StoredRows& block : blocks)
        for (const std::uint64_t offset : block.offsets) {
          const std::int64_t id = block.first_row + static_cast<std::int64_t>(offset);
          if (id < wanted.rows) continue;
          if (outside == 0 || id < first) first = id;
          ++outside;
        }
    }
  }
  if (outside > 0)
    throw FailedPreconditionError(
        str("variable \"", wanted.variable, "\" has ", wanted.rows, " rows, and \"", wanted.saved,
            "\" of the checkpoint ", folder, " is hashed and holds ", outside,
            " ids beyond them, the lowest ", first,
            ": give the variable more rows, or leave it out by RestoreOptions::exclude"));
}

}  // namespace cairn::storage
