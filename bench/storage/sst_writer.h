// RocksDB's SstFileWriter alone: what bounds how fast a checkpoint is written.
#pragma once
#include <cstddef>
#include <string>

namespace cairn::bench {

// Writes `bytes` in values of 64 KB to files of 64 MB in `folder`, without checksums of ours, syncs
// each file, and removes them all. Returns the seconds that writing and syncing took.
double sst_writer_seconds(const std::string& folder, std::size_t bytes);

}  // namespace cairn::bench
