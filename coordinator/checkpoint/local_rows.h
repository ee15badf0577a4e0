// LocalRows: the folders that checkpoints have in local folders of the ps (CheckpointPolicy).
//
// The file LOCAL-ROWS.json in the folder of the checkpoints lists them. A folder is noted before
// its ps begins to write it, and struck out once the ps have said that it is gone. So the list has
// all that exist, and what no manifest names is found at a later save, whatever was away or was
// killed meanwhile.
//   Thread  any that may touch files; for the holder of the folder's lock.
//   Errors  the disk's; DataLoss: the list is damaged.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/disk/disk.h"

namespace cairn {

inline constexpr const char* kLocalRowsFile = "LOCAL-ROWS.json";

struct LocalRows {
  std::string task;  // whose it is: "/job:ps/task:0"
  std::string path;  // "/data/ps-0/rows-SESSION-ATTEMPT" of its machine
  bool operator==(const LocalRows&) const = default;
};

// Where ps `index` writes the rows of one attempt.
LocalRows local_rows_of_ps(const std::string& local_folder, std::uint32_t index,
                           const std::string& task, std::uint64_t session, std::uint64_t attempt);

// Whether there are any; a bucket's checkpoints have none.
bool has_local_rows(const Disk& disk, const std::string& folder);
void note_local_rows(Disk& disk, const std::string& folder, const std::vector<LocalRows>& rows);
void forget_local_rows(Disk& disk, const std::string& folder, const std::vector<LocalRows>& rows);
// Those that no checkpoint of the folder names. None, and a warning, where a manifest cannot be
// read, since it might name any.
std::vector<LocalRows> unnamed_local_rows(Disk& disk, const std::string& folder);

}  // namespace cairn
