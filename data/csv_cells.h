// From the text of cells to typed columns.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/csv_reader.h"
#include "data/feature_plan.h"
#include "data/schema.h"

namespace cairn {

bool parses_as(std::string_view text, DType dtype);

struct BadCell {
  std::size_t row = 0, column = 0;  // places in CsvCells
};

// Decodes one column of CsvCells. Thread: one at a time.
class ColumnDecoder {
 public:
  ColumnDecoder(const CsvSchema& schema, const CsvColumn& column, OptionNames names);

  // Adds the cells that do not parse to `bad`; their values are then undefined.
  void decode(std::vector<std::string_view>& cells, std::size_t place, std::vector<BadCell>& bad);
  // What decode() found: text refers to the cells, good as long as they are.
  const RawColumn& decoded() const { return decoded_; }
  // As columns of a block: one, or values and row splits.
  void append_to(std::vector<Tensor>& columns) const;
  // Why `cell` is bad.
  std::string complaint(std::string_view cell) const;
  const std::string& name() const { return column_.name; }

 private:
  template <typename T, typename Parse>
  void decode_numbers(const std::vector<std::string_view>& cells, std::size_t place,
                      std::vector<BadCell>& bad, Parse parse);
  template <typename T, typename Parse>
  void decode_as(const std::vector<std::string_view>& cells, std::size_t place,
                 std::vector<BadCell>& bad, Parse parse);
  void decode_label(const std::vector<std::string_view>& cells, std::size_t place,
                    std::vector<BadCell>& bad);
  void split(const std::vector<std::string_view>& cells);

  const CsvColumn& column_;
  const CsvLabel* label_ = nullptr;  // with positive values
  bool binary_ = false;              // numbers must lie in [0, 1]
  std::string_view unknown_;
  OptionNames names_;
  std::vector<std::string_view> pieces_;  // of cells that were split
  RawColumn decoded_;
};

}  // namespace cairn
