// Where the rows of a version's tables lie in the databases of its checkpoint.
//   Thread  one; calls block on the disk.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "core/graph/variable.h"
#include "serving/model/block_files.h"
#include "serving/model/saved_rows.h"
#include "storage/single_rows/block_places.h"
#include "storage/superseded_rows.h"

namespace cairn::serving {

// The places of one variable's rows, by database in the order of the manifest.
struct StoredPlaces {
  std::vector<std::vector<storage::BlockPlace>> databases;  // their files are numbers of `files`
  std::shared_ptr<const BlockFiles> files;
  storage::SupersededRows superseded;
  std::size_t memory_bytes() const;
  std::size_t disk_bytes() const;
};

// The databases of a checkpoint. No block of rows is read.
class StoredDatabases {
 public:
  // `weights` outlives this.
  //   Errors  those of storage::blocks_of_database() and of BlockFiles::open().
  explicit StoredDatabases(const SavedRowsReader& weights);
  // To be called once for a variable.
  //   Errors  DataLoss: the checkpoint lacks it, or a record that describes it is damaged.
  //           Unimplemented: its blocks overlap, as an earlier release saved them.
  StoredPlaces places_of(const VariableSpec& spec);

 private:
  const SavedRowsReader& weights_;
  std::shared_ptr<BlockFiles> files_ = std::make_shared<BlockFiles>();
  std::vector<storage::DatabaseBlocks> databases_;
};

}  // namespace cairn::serving
