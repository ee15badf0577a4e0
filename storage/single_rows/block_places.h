// BlockPlaces: finds the blocks of rows in the files of a database, so that single rows can be read
// while no database is open. There is one list for each variable, made once.
//
//   A database's sorted files never change, so that their descriptors stay good when the files are
//   removed.
//   Cost    24 bytes of memory per block of 64 KB.
//   Thread  any; calls block on the disk.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::storage {

struct BlockPlace {
  std::int64_t first_row = 0;  // of the whole variable
  std::uint64_t begin = 0;     // of the bytes in the file that hold the block, and maybe others
  std::uint32_t bytes = 0;
  std::uint32_t file = 0;  // in DatabaseBlocks::files
};

struct DatabaseBlocks {
  std::vector<std::string> files;                         // paths
  std::map<std::string, std::vector<BlockPlace>> blocks;  // by variable; ascending by first row
};

// Learns the places of all blocks in the database in `folder`. No block is read.
//   Errors  DataLoss: there is no database, or a file cannot be read; names it.
//           Unimplemented: the database lies in a bucket, or an earlier release wrote it, which
//           kept no list of a file's records.
DatabaseBlocks blocks_of_database(const std::string& folder);

// The bytes of a record in those of its place, as they were read from the file. They are not
// verified here: decoding the value does that.
struct RecordBytes {
  std::size_t at = 0, bytes = 0;  // of the value
};
//   Errors  DataLoss: the record is not there.
RecordBytes find_record(std::string_view place, std::string_view key);

}  // namespace cairn::storage
