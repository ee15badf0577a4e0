// MergedRows: the rows of one variable of a checkpoint in ascending order, whichever of its
// databases hold them. The tools read a checkpoint by it; a restore, which wants parts in no order,
// reads by RangeRead alone.
//   Thread  one at a time; calls block on the disk.
//   Cost  one block of each database in memory, whatever the checkpoint's size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/update_rule.h"
#include "core/rows/layout.h"
#include "storage/manifest.h"
#include "storage/range_read.h"
#include "storage/row_block.h"
#include "storage/row_store.h"
#include "storage/superseded_rows.h"

namespace cairn::storage {

// How a row of a variable is made up, in elements of its dtype.
struct RowFields {
  // The parameters, whose name is empty, or one slot of the rule.
  struct Field {
    std::string name;
    std::int64_t begin = 0, width = 0;
    bool operator==(const Field&) const = default;
  };
  DType dtype = DType::kFloat32;
  std::vector<Field> fields;  // in the order in which they lie in the row
  std::int64_t elements = 0;
  std::size_t bytes() const { return static_cast<std::size_t>(elements) * dtype_bytes(dtype); }
  bool operator==(const RowFields&) const = default;
};
RowFields row_fields(const VariableInfo& variable);
// How many rows the variable has, held or not.
std::int64_t row_count(const VariableInfo& variable);

// Some rows, ascending, in memory that is used again.
struct RowBatch {
  std::vector<std::int64_t> rows;
  std::vector<std::byte> data;  // [rows][RowFields::bytes()]
  void clear() {
    rows.clear();
    data.clear();
  }
};

class MergedRows {
 public:
  // `databases` in the order of the manifest: of two that hold a row the later one's counts. Their
  // readers belong to the caller, and must not be used for anything else until this is done.
  //   Errors  DataLoss: a table record is damaged. Unimplemented: the blocks overlap, as those of
  //           hashed variables do that earlier releases saved.
  MergedRows(const std::vector<DatabaseReader*>& databases, VariableInfo variable, RowRange range);

  // The next rows, about a quarter of a megabyte of them; false: there are no more.
  //   Errors  DataLoss, naming the file: a block is damaged, or does not fit the manifest.
  bool next(RowBatch& out);
  // The highest count of updates of any part (RuleInputs::t).
  std::int64_t updates() const { return updates_; }
  const RowFields& form() const { return form_; }
  // Says what parts had seen of rows that were not admitted.
  const std::vector<SeenRows>& seen() const { return superseded_->seen(); }

 private:
  // The block of one database that its cursor is in. `reader` is not null.
  struct Source {
    DatabaseReader* reader;
    RangeRead range;
    StoredRows block{};
    std::size_t at = 0;
    std::int64_t row = 0;  // the number of the row at `at`
    std::int64_t last = -1;
    bool done = false;
  };
  void load(Source& source);
  void advance(Source& source, std::size_t rows);
  void fit(Source& source);
  std::size_t run_length(const Source& source, std::int64_t bound, std::size_t most) const;
  void take(Source& source, std::size_t rows, RowBatch& out);

  VariableInfo variable_;
  RowRange range_;
  RowFields form_;
  std::unique_ptr<const SupersededRows> superseded_;  // sources refer to it
  std::vector<Source> sources_;
  std::int64_t updates_ = 0;
};

}  // namespace cairn::storage
