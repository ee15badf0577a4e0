// CheckpointWriter: the databases of a checkpoint that a tool makes of another one's rows, or of a
// file. What a training saves is written by its ps (ps/).
//   Thread  one at a time; calls block on the disk.
//   Cost  a block of each database in memory.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/rows/layout.h"
#include "storage/manifest.h"
#include "storage/merged_rows.h"
#include "storage/row_block.h"
#include "storage/row_encoding.h"
#include "storage/row_store.h"

namespace cairn::storage {

// The variables in the order in which a database has them.
std::vector<VariableInfo> in_key_order(std::vector<VariableInfo> variables);

class CheckpointWriter {
 public:
  // Databases `folder`/NAME, each replacing what is there.
  CheckpointWriter(RowStore& store, std::string folder, std::vector<std::string> names);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Begins a variable, to be called in in_key_order(). Its rows are cut into a part for each
  // database, some of which may be empty. `seen` is what its parts had seen of other rows. Blocks
  // are written in `form`, whatever the variable says of its own.
  //   Result  the parts that hold rows: VariableInfo::parts.
  std::vector<RowRange> begin(const VariableInfo& variable, std::int64_t updates,
                              std::vector<SeenRows> seen = {}, BlockForm form = {});
  // Rows of that variable, ascending from one call to the next.
  //   Errors  those of DatabaseWriter. InvalidArgument: a row is not above the one before it, or
  //           beyond the variable's.
  void add(const RowBatch& batch);
  // Ends the databases; what is left is to commit a manifest that names them.
  std::vector<DatabaseInfo> finish();

 private:
  struct Database;
  void flush(Database& database);
  void end_variable();
  void add(Database& database, std::int64_t row, const std::byte* data);

  VariableInfo variable_;
  RowFields form_;
  std::vector<SeenRows> seen_;
  BlockForm block_form_;
  std::int64_t last_ = -1;
  std::size_t current_ = 0;  // the database of the row before
  std::vector<std::unique_ptr<Database>> databases_;
};

}  // namespace cairn::storage
