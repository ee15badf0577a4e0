// StoredRows: the rows of one variable of a served version that are read from the databases of its
// checkpoint, where they are not in the cache.
//
//   A row is looked for in the newest database first. The block that it must lie in is verified
//   when a row of it is read for the first time; from then on the row's own bytes are read alone,
//   where it is not compressed.
//   Errors  of read() and whole(): DataLoss: a block is damaged or cannot be read; names the file,
//           the place and the row. Other rows are read as before.
//   Memory  32 bytes per block of 64 KB, and 16 per row that went since a delta's base.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/graph/variable.h"
#include "serving/model/block_files.h"
#include "serving/model/read_counters.h"
#include "serving/model/row_cache.h"
#include "serving/model/served_rows.h"
#include "serving/model/stored_places.h"
#include "storage/single_rows/block_places.h"
#include "storage/single_rows/row_layout.h"
#include "storage/superseded_rows.h"

namespace cairn::serving {

class StoredRows final : public ServedRows {
 public:
  // `table` tells its rows from those of others in the cache, which is one for rows of their size.
  StoredRows(std::shared_ptr<const VariableSpec> spec, std::uint64_t seed, StoredPlaces places,
             std::uint32_t table, std::shared_ptr<RowCache> cache,
             std::shared_ptr<ReadCounters> counters);
  ~StoredRows() override;

  void read(std::span<const std::int64_t> rows, std::byte* out,
            std::vector<std::int64_t>& scratch) const override;
  Tensor whole() const override;
  // Bytes of what finds the rows; the cache is not this table's.
  std::size_t bytes() const override;

 private:
  class Lookup;
  struct Blocks {
    std::vector<storage::BlockPlace> places;
    // By block, what is known of it since it was verified, in one word (Known); 0: nothing yet.
    std::unique_ptr<std::atomic<std::uint64_t>[]> known;
  };
  // How rows lie in blocks of one kind; a table has few kinds.
  struct Kind {
    storage::RowLayout layout;
    std::size_t parameter_bytes = 0;
  };
  static constexpr std::size_t kKindsMax = 16;
  // The number of the kind with this layout; kKindsMax: there are too many.
  std::size_t kind_of(const storage::RowLayout& layout) const;
  void read_from_disk(std::span<const std::int64_t> rows, std::byte* out,
                      std::vector<std::int64_t>& missed) const;

  const std::shared_ptr<const VariableSpec> spec_;
  const std::uint64_t seed_;
  const std::shared_ptr<const BlockFiles> files_;
  const storage::SupersededRows superseded_;
  const std::size_t row_bytes_;
  std::vector<Blocks> databases_;
  mutable std::mutex adding_;  // guards the numbers of kinds; a kind that has one stays as it is
  mutable std::array<Kind, kKindsMax> kinds_;
  mutable std::size_t kinds_count_ = 0;
  const std::uint32_t table_;
  const std::shared_ptr<RowCache> cache_;
  const std::shared_ptr<ReadCounters> counters_;
};

}  // namespace cairn::serving
