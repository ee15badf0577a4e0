// The rows of the row log's benchmark in RocksDB, and batches of them by MultiGet over threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace cairn::bench {

class RocksRows {
 public:
  // Rows of `row_bytes` under the keys 0 to `rows`, in sorted files as a compaction leaves them:
  // blocks of 4 KB, a filter, no compression, no cache, O_DIRECT.
  RocksRows(const std::string& folder, std::uint64_t rows, std::size_t row_bytes, int threads);
  ~RocksRows();
  RocksRows(const RocksRows&) = delete;
  RocksRows& operator=(const RocksRows&) = delete;

  // Reads these rows, the batch cut over the threads; waits for them.
  void read(std::span<const std::uint64_t> keys);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cairn::bench
