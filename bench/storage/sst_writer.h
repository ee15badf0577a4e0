// RocksDB's SstFileWriter alone: what bounds how fast a checkpoint is written.
#pragma once
#include <cstddef>
#include <string>

namespace cairn::bench {

// Seconds that it takes to write `bytes` in values of 64 KB to files of 64 MB in `folder`, with no
// checksum of ours, each file synced. The files are removed.
double sst_writer_seconds(const std::string& folder, std::size_t bytes);

}  // namespace cairn::bench
