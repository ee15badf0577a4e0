// RowStore: the databases in which a checkpoint's rows lie. RocksDB behind its door, or a plain
// file for the simulation.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/disk/disk.h"

namespace cairn::storage {

struct FileInfo {
  std::string name;  // relative to the checkpoint's folder
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // CRC-32C
  bool operator==(const FileInfo&) const = default;
};

// A database that is being made. If it is dropped unfinished, it leaves at most files that no
// manifest names.
//   Thread  one at a time; calls block on the disk.
class DatabaseWriter {
 public:
  virtual ~DatabaseWriter() = default;
  // Adds a record; keys must ascend.
  //   Errors  ResourceExhausted: the disk is full. DataLoss: it cannot be written. Both name the
  //           file.
  virtual void put(std::string_view key, std::string_view value) = 0;
  // Ends the database: everything is on the disk and synced.
  //   Result  the database's files, named relative to its folder's parent.
  virtual std::vector<FileInfo> finish() = 0;
};

// A cursor over a database. It stands nowhere until the first seek.
//   Errors  of every call: DataLoss, naming the database, where a file is missing, cut short or
//           changed.
//   Thread  one at a time; calls block on the disk.
class DatabaseReader {
 public:
  virtual ~DatabaseReader() = default;
  virtual void seek(std::string_view key) = 0;           // to the first key at or after it
  virtual void seek_for_prev(std::string_view key) = 0;  // to the last key at or before it
  virtual bool valid() const = 0;
  virtual void next() = 0;
  virtual std::string_view key() const = 0;  // until the cursor moves
  virtual std::string_view value() const = 0;

  // Announces that the records from `begin` to before `end` will be read in order: they are read
  // ahead, and nothing that lies behind them.
  //   Result  roughly how many bytes they take.
  virtual std::uint64_t will_read(std::string_view begin, std::string_view end) = 0;
  // Announces that the last record at or before `key` will be sought: the disk reads it while
  // records that were announced before are waited for. So many of them should be on their way that
  // the disk is kept busy; each takes its bytes of the page cache until it is sought.
  //   Result  the key of that record, for seek_exactly(), which reads its block alone. Empty: there
  //           is none, or it is not known, and nothing was asked of the disk (databases of earlier
  //           releases); seek_for_prev() tells.
  virtual std::string will_seek_for_prev(std::string_view key) = 0;
  // Seeks the record of this key.   Errors  DataLoss: it is not there.
  void seek_exactly(const std::string& key) {
    seek(key);
    if (!valid() || this->key() != key)
      throw DataLossError(str(file(), ": a record that it lists is not there"));
  }
  // How many bytes have been asked of the disk since the database was opened, those that were read
  // ahead among them.
  virtual std::uint64_t read_bytes() const = 0;
  // The file that the record under the cursor lies in, for messages.
  virtual std::string file() const = 0;
};

// Makes and opens databases.
//   Thread  any.
class RowStore {
 public:
  virtual ~RowStore() = default;
  // A new database in `folder`, replacing what is there.
  virtual std::unique_ptr<DatabaseWriter> create(const std::string& folder) = 0;
  // NotFound: there is no database in `folder`.
  virtual std::unique_ptr<DatabaseReader> open(const std::string& folder) = 0;
  // The one that databases are on, and with them all of a checkpoint.
  virtual Disk& disk() = 0;
};

// Each database is one of RocksDB: sorted files that are made beside it and ingested as they are;
// opened read-only.
std::unique_ptr<RowStore> make_rocks_row_store();
// Each database is one file, held in memory and passed through `disk` as a whole: for the
// simulation and for tests.
std::unique_ptr<RowStore> make_memory_row_store(Disk& disk);

// The size and the checksum of a file. `name` goes into the result as it is.
FileInfo file_info(const Disk& disk, const std::string& path, std::string name);

}  // namespace cairn::storage
