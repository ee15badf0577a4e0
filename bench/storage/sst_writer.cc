#include "bench/storage/sst_writer.h"

#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include <cstdio>
#include <filesystem>

#include "bench/measure.h"
#include "core/base/error.h"

namespace cairn::bench {

// With the options that storage/rocks_row_store.cc has, and RocksDB's defaults beside them.
double sst_writer_seconds(const std::string& folder, std::size_t bytes) {
  constexpr std::size_t kValueBytes = std::size_t{64} << 10, kFileBytes = std::size_t{64} << 20;
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.use_fsync = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = kValueBytes;
  table.format_version = 5;
  table.no_block_cache = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  const auto check = [](const rocksdb::Status& status) {
    if (!status.ok()) throw DataLossError(status.ToString());
  };
  const std::string value(kValueBytes, 'v');
  const auto begin = Stopwatch::now();
  std::size_t written = 0;
  for (int file = 0; written < bytes; ++file) {
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
    check(writer.Open(str(folder, "/", file, ".sst")));
    for (std::size_t of_file = 0; of_file < kFileBytes && written < bytes; of_file += kValueBytes) {
      char key[17];
      std::snprintf(key, sizeof key, "%016zx", written);
      check(writer.Put(key, value));
      written += kValueBytes;
    }
    check(writer.Finish());
  }
  const double seconds = seconds_since(begin);
  for (const auto& file : std::filesystem::directory_iterator(folder))
    std::filesystem::remove(file.path());
  return seconds;
}

}  // namespace cairn::bench
