// Where the databases of a checkpoint lie, by their names in its manifest:
//
//   ps-0-shard-0                                   in the checkpoint's folder
//   ../rows-SESSION-ATTEMPT/ps-0-shard-0           beside it, in a bucket
//   /data/ps-0/rows-SESSION-ATTEMPT/ps-0-shard-0   in a local folder of the ps that wrote it
//
// The last one is local: its path is one of that ps's machine, and may mean nothing on another.
// Files are named in the same way. Everything that opens a database or a file takes its path from
// place_of(); what reads a whole checkpoint on one machine asks verify_here() first.
//   Thread  any; what takes a disk may block on it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/disk/disk.h"
#include "storage/manifest.h"

namespace cairn::storage {

// The name of a folder that no other attempt at a checkpoint uses: "rows-SESSION-ATTEMPT", the
// session in 16 digits of hex.
std::string rows_folder_name(std::uint64_t session, std::uint64_t attempt);
bool is_rows_folder_name(const std::string& name);
// The name of that folder in that of a database; empty: it lies in its checkpoint's own folder.
std::string rows_folder_of(const std::string& database);

// Whether a database, or a file, lies in a local folder of a ps.
bool is_local(const std::string& name);
// The folder "/data/ps-0/rows-SESSION-ATTEMPT" of a local database; empty: it is not local.
std::string local_rows_of(const std::string& database);
// The path of a database or a file of the checkpoint in the folder `checkpoint`.
std::string place_of(const std::string& checkpoint, const std::string& name);

// A database name from a manifest or a request must be one of the three above.
//   Errors  InvalidArgument: it is none of them.
void verify_database_name(const std::string& name);

// Whether a checkpoint's database was written for it, and not for one that it goes back to.
bool is_own(const Manifest& manifest, const DatabaseInfo& database);

// Whether there is anything of a database on this machine.
bool is_here(const Disk& disk, const std::string& checkpoint, const DatabaseInfo& database);
// Says of a local database that is not on this machine who wrote it, where it is, and what to do.
std::string not_here_text(const DatabaseInfo& database);
//   Errors  NotFound: a local database is not on this machine. Says so of the first one, and how
//           many there are.
void verify_here(const Disk& disk, const std::string& checkpoint, const Manifest& manifest);

// Where local databases are to be looked for instead of in the folder that their ps wrote them
// into: the place where that one is mounted on this machine, or was copied to.
class DatabaseFolders {
 public:
  DatabaseFolders() = default;
  // Each as "ps:1=/mnt/ps-1", which stands for the folder that has ps 1's folders "rows-...".
  //   Errors  InvalidArgument: one is not like this.
  explicit DatabaseFolders(const std::vector<std::string>& texts);
  // Names the databases of these ps by their paths on this machine.
  void apply(Manifest& manifest) const;
  // The same of a folder "/data/ps-1/rows-SESSION-ATTEMPT" of the task "/job:ps/task:1".
  std::string local_rows(const std::string& task, const std::string& path) const;

 private:
  std::map<std::string, std::string> folders_;  // by task
};

}  // namespace cairn::storage
