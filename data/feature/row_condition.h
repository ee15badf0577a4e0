// RowCondition: what a row of a file must fulfil to be read, as one text, such as
//
//     arr_delay known          the cell has a value
//     day % 5 != 0             the remainder, in [0, 5)
//     hour >= 6                ==, !=, <, <=, > or >=, beside a number
//     carrier == "UA"          or a text, in either kind of quotes: byte by byte, as of a string
//     carrier in ["UA", "AA"]  one of these numbers or texts
//     day < "2024-03-01"       of a column of dates: a date in the column's format, or its seconds
//
// A column whose name holds blanks, quotes or one of % = ! < > [ ] , stands in quotes itself.
// Numbers are compared as float64. A cell whose value is unknown fulfils no condition, != included.
//   Thread  any.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/array.h"
#include "core/tensor/tensor.h"
#include "data/feature/date_format.h"

namespace cairn {

// The facts that a condition needs about a column that it may name.
struct ConditionColumn {
  std::string name;
  DType dtype = DType::kFloat32;
  bool several = false;          // a cell holds any number of values: it can be known, no more
  bool read_past = false;        // the schema says so; no condition can read it
  std::string date_format = "";  // of a column of dates (CsvColumn::date_format)
};

class RowCondition {
 public:
  //   Errors  InvalidArgument, naming the text, the character at which it goes wrong and what is
  //           wanted there; for an unknown column also the nearest one.
  RowCondition(std::string text, std::span<const ConditionColumn> columns);
  // "`column` known", whatever characters its name has.
  static RowCondition known(std::string column);

  const std::string& text() const { return text_; }
  const std::string& column() const { return column_; }
  // Whether a cell, as the file has it, meets the condition; its value must be known. A cell that
  // should be a number and is none passes: the column's own reader complains of it.
  bool holds(std::string_view cell) const;
  // Whether it compares numbers. The same is then recorded of a value that was read before: any
  // numeric dtype or bool, of any shape -> bool.
  bool of_number() const { return !numbers_.empty(); }
  Array recorded(const Array& value) const;

 private:
  friend class ConditionParser;
  RowCondition() = default;
  enum class Kind : std::uint8_t {
    kKnown,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kMore,
    kMoreEqual
  };
  template <typename Value, typename List>
  bool compares(Value value, const List& with) const;
  bool holds_of(double number) const;

  std::string text_, column_;
  Kind kind_ = Kind::kKnown;
  bool of_text_ = false, of_flag_ = false;
  std::optional<DateFormat> date_;
  std::int64_t modulus_ = 0;     // 0: none
  std::vector<double> numbers_;  // one; of `in` any number of them, of which one has to be equal
  std::vector<std::string> texts_;
};

}  // namespace cairn
