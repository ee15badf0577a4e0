// OpenedCheckpoint: a checkpoint on disk as its variables' rows, read as streams. The one mechanism
// under `get`, `stats`, `diff`, `reshard` and `export`.
#pragma once
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/rows/layout.h"
#include "storage/database_place.h"
#include "storage/manifest.h"
#include "storage/merged_rows.h"
#include "storage/row_store.h"

namespace cairn::tools::ckpt {

// Opens all databases of the checkpoint; those in local folders of the ps where `folders` says.
//   Errors  NotFound, DataLoss: those of storage, and verify_here(); and, of every call, NotFound
//           if it was removed while it was read.
//   Thread  one.
class OpenedCheckpoint {
 public:
  explicit OpenedCheckpoint(std::string path, const storage::DatabaseFolders& folders = {});

  const std::string& path() const { return path_; }
  const storage::Manifest& manifest() const { return manifest_; }
  std::uint64_t bytes() const;  // of all databases
  //   Errors  InvalidArgument: there is none of that name; names the nearest one.
  const storage::VariableInfo& variable(const std::string& name) const;
  // One variable's rows at a time: the stream before must be gone.
  storage::MergedRows rows(const storage::VariableInfo& variable) const;
  storage::MergedRows rows(const storage::VariableInfo& variable, RowRange range) const;

 private:
  std::string path_;
  storage::Manifest manifest_;
  std::vector<std::unique_ptr<storage::DatabaseReader>> databases_;
};

// The same rows, read and checked by a thread of their own, a few megabytes ahead.
//   Errors  next(): those of reading.
//   Thread  one.
class RowsAhead {
 public:
  // `path` is the checkpoint's, for messages.
  RowsAhead(std::string path, storage::MergedRows rows);
  ~RowsAhead();
  RowsAhead(const RowsAhead&) = delete;
  RowsAhead& operator=(const RowsAhead&) = delete;

  // Swaps the next rows into `batch`; false: there are no more.
  bool next(storage::RowBatch& batch);
  std::int64_t updates() const { return updates_; }
  const std::vector<storage::SeenRows>& seen() const { return seen_; }
  const storage::RowFields& form() const { return form_; }

 private:
  static constexpr std::size_t kBatches = 16;
  void read();

  std::string path_;
  storage::MergedRows rows_;
  storage::RowFields form_;
  std::int64_t updates_;
  std::vector<storage::SeenRows> seen_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<storage::RowBatch> free_ = std::vector<storage::RowBatch>(kBatches);
  std::vector<storage::RowBatch> ready_;  // oldest first
  bool ended_ = false, stopped_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace cairn::tools::ckpt
