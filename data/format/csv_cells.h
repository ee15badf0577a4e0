// From the text of cells to typed columns. Cells come by column (CsvCells), so that one column is
// decoded in one loop, with the branch on its dtype outside.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset/schema.h"
#include "data/feature/date_format.h"
#include "data/feature/feature_plan.h"
#include "data/file/csv_reader.h"

namespace cairn {

// Whether `text` is one value of the dtype, or of the column, as the decoder reads it.
bool parses_as(std::string_view text, DType dtype);
bool parses_as(std::string_view text, const CsvColumn& column);

// A cell that does not parse. What to do about it is the source's choice: end the run, or leave the
// line out.
struct BadCell {
  std::size_t row = 0, column = 0;  // places in CsvCells
};

// How features use a column, where that bounds its values.
struct ColumnUse {
  bool as_float32 = false;  // it is computed with in float32, whose range no number may leave
  IdRange ids = {};         // where the column has no bounds of its own
};

// Decodes one column of CsvCells. It keeps a reference to the schema's column, which must outlive
// it.
//   Thread  one at a time.
class ColumnDecoder {
 public:
  ColumnDecoder(const CsvSchema& schema, const CsvColumn& column, ColumnUse use = {});

  // Decodes `cells`, after replacing unknown ones by the default value. Cells that do not parse are
  // added to `bad` with `place` as their column; their values are then undefined, so that the
  // caller must drop those rows and decode again.
  void decode(std::vector<std::string_view>& cells, std::size_t place, std::vector<BadCell>& bad);
  // The result of decode(). Text refers to the cells, and is valid as long as they are.
  const RawColumn& decoded() const { return decoded_; }
  // For a column with a missing_indicator: 1 where a cell has no value, otherwise 0.
  const RawColumn& missing() const { return missing_; }
  // Appends what decode() found as columns of a block: one, or values and row splits, and then
  // the indicator. Strings are
  // copied, numbers share their tensor.
  void append_to(std::vector<Tensor>& columns) const;
  // Why `cell` is bad, for a message; asked only of cells in `bad`.
  std::string complaint(std::string_view cell) const;
  // The column's name, by which features find it.
  const std::string& name() const { return column_.name; }

 private:
  // decode() by kind of column.
  template <typename T, typename Parse>
  void decode_numbers(const std::vector<std::string_view>& cells, std::size_t place,
                      std::vector<BadCell>& bad, Parse parse);
  template <typename T, typename Parse>
  void decode_as(const std::vector<std::string_view>& cells, std::size_t place,
                 std::vector<BadCell>& bad, Parse parse);
  void decode_values(const std::vector<std::string_view>& cells, std::size_t place,
                     std::vector<BadCell>& bad);
  void decode_dates(const std::vector<std::string_view>& cells, std::size_t place,
                    std::vector<BadCell>& bad);
  void decode_several(const std::vector<std::string_view>& cells, std::size_t place,
                      std::vector<BadCell>& bad);
  void decode_label(const std::vector<std::string_view>& cells, std::size_t place,
                    std::vector<BadCell>& bad);
  void decode_class(const std::vector<std::string_view>& cells, std::size_t place,
                    std::vector<BadCell>& bad);
  std::string cell_complaint(std::string_view value) const;
  std::string piece_complaint(std::string_view cell) const;
  bool is_unknown(std::string_view cell) const;
  bool has_no_value(std::string_view cell) const;
  // Cells of several values become pieces_ and row splits.
  void split(const std::vector<std::string_view>& cells);

  const CsvColumn& column_;
  const CsvSchema& schema_;
  const CsvLabel* label_ = nullptr;  // with positive values, or classes
  bool binary_ = false;              // numbers must lie in [0, 1]
  bool as_float32_ = false;
  IdRange ids_;
  std::optional<DateFormat> date_;        // of a column of dates
  std::vector<std::string_view> pieces_;  // of cells that were split
  RawColumn decoded_, missing_;
};

}  // namespace cairn
