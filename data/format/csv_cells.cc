// Cells are views of the reader's buffer, and text stays a view: features hash it or look it up
// without a copy. Only a column that is handed out as strings is copied, in append_to().
#include "data/format/csv_cells.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/feature/number_complaint.h"
#include "data/feature/numbers.h"
#include "data/feature/printable.h"
#include "data/file/csv_complaints.h"
#include "data/format/csv_filter.h"

namespace cairn {
namespace {

bool is_one_of(std::string_view text, const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(), [&](const auto& each) { return text == each; });
}

bool parse_narrow(std::string_view text, double& out) {
  return parse_real(text, out) && std::fabs(out) <= double{std::numeric_limits<float>::max()};
}

}  // namespace

bool parses_as(std::string_view text, DType dtype) {
  return number_fault(text, dtype) == NumberFault::kNone;
}

bool parses_as(std::string_view text, const CsvColumn& column) {
  std::int64_t seconds = 0;
  return column.date_format.empty() ? parses_as(text, column.dtype)
                                    : DateFormat(column.date_format).parse(text, seconds);
}

ColumnDecoder::ColumnDecoder(const CsvSchema& schema, const CsvColumn& column, ColumnUse use)
    : column_(column),
      schema_(schema),
      as_float32_(use.as_float32 && column.dtype == DType::kFloat64),
      ids_(column.ids.any() ? use.ids : column.ids) {
  const bool is_label = column.name == schema.label.column;
  if (is_label && (!schema.label.positive.empty() || !schema.label.classes.empty()))
    label_ = &schema.label;
  binary_ = is_label && schema.label.binary;
  if (!column.date_format.empty()) date_.emplace(column.date_format);
  decoded_.dtype = label_ == nullptr              ? column.dtype
                   : schema.label.classes.empty() ? DType::kFloat32
                                                  : DType::kInt64;
}

// The hot loop of reading CSV: one parse per cell. Errors go to a list instead of an exception,
// because with OnError::kSkipAndCount they are expected.
template <typename T, typename Parse>
void ColumnDecoder::decode_as(const std::vector<std::string_view>& cells, std::size_t place,
                              std::vector<BadCell>& bad, Parse parse) {
  decoded_.values = Tensor(decoded_.dtype, {static_cast<std::int64_t>(cells.size())});
  T* out = decoded_.values.mutable_values<T>().data();
  for (std::size_t row = 0; row < cells.size(); ++row)
    if (!parse(cells[row], out[row])) [[unlikely]]
      bad.push_back({row, place});
}

template <typename T, typename Parse>
void ColumnDecoder::decode_numbers(const std::vector<std::string_view>& cells, std::size_t place,
                                   std::vector<BadCell>& bad, Parse parse) {
  if (!ids_.any())
    return decode_as<T>(cells, place, bad, [this, parse](std::string_view text, T& out) {
      return parse(text, out) && ids_.holds(static_cast<std::int64_t>(out));
    });
  if (!binary_) return decode_as<T>(cells, place, bad, parse);
  decode_as<T>(cells, place, bad, [parse](std::string_view text, T& out) {
    if (!parse(text, out)) return false;
    const auto value = static_cast<double>(out);
    return value >= 0 && value <= 1;  // not so if it is NaN
  });
}

// With `negative` values given, a text that is in neither list is bad; without, it means 0.
void ColumnDecoder::decode_label(const std::vector<std::string_view>& cells, std::size_t place,
                                 std::vector<BadCell>& bad) {
  decode_as<float>(cells, place, bad, [this](std::string_view text, float& out) {
    bool positive = is_one_of(text, label_->positive);
    out = positive ? 1.0f : 0.0f;
    return positive || label_->negative.empty() || is_one_of(text, label_->negative);
  });
}

// Few classes are looked through faster than hashed.
void ColumnDecoder::decode_class(const std::vector<std::string_view>& cells, std::size_t place,
                                 std::vector<BadCell>& bad) {
  decode_as<std::int64_t>(cells, place, bad, [this](std::string_view text, std::int64_t& out) {
    const auto& classes = label_->classes;
    out = std::ranges::find(classes, text) - classes.begin();
    return out < static_cast<std::int64_t>(classes.size());
  });
}

// A cell of several values: an empty cell has none. A separator at the end adds no empty value, one
// between others does.
void ColumnDecoder::split(const std::vector<std::string_view>& cells) {
  pieces_.clear();
  decoded_.splits = Tensor(DType::kInt64, {static_cast<std::int64_t>(cells.size()) + 1});
  auto splits = decoded_.splits.mutable_values<std::int64_t>();
  splits[0] = 0;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    std::string_view rest = cells[row];
    if (column_.dtype != DType::kString && is_unknown(rest)) rest = {};
    while (!rest.empty()) {
      std::size_t end = std::min(rest.find(column_.separator), rest.size());
      pieces_.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    splits[row + 1] = static_cast<std::int64_t>(pieces_.size());
  }
  decoded_.text = pieces_;
}

bool ColumnDecoder::is_unknown(std::string_view cell) const {
  return cairn::is_unknown(cell, schema_, column_);
}

// A cell that was given its default value before, as when rows are decoded once more, is known by
// where its text lies.
bool ColumnDecoder::has_no_value(std::string_view cell) const {
  return is_unknown(cell) ||
         (column_.default_value && cell.data() == column_.default_value->data());
}

// A default value replaces the cell's text before it is parsed, so it is parsed like any other;
// element_of_cells() has checked that it fits.
void ColumnDecoder::decode(std::vector<std::string_view>& cells, std::size_t place,
                           std::vector<BadCell>& bad) {
  if (column_.missing_indicator) {
    missing_.values = Tensor(DType::kFloat32, {static_cast<std::int64_t>(cells.size())});
    std::ranges::transform(cells, missing_.values.mutable_values<float>().begin(),
                           [this](auto cell) { return has_no_value(cell) ? 1.0f : 0.0f; });
  }
  if (column_.default_value)
    for (auto& cell : cells)
      if (is_unknown(cell)) cell = *column_.default_value;
  if (label_ != nullptr && !label_->classes.empty()) return decode_class(cells, place, bad);
  if (label_ != nullptr) return decode_label(cells, place, bad);
  if (column_.separator != 0) return decode_several(cells, place, bad);
  decode_values(cells, place, bad);
}

void ColumnDecoder::decode_values(const std::vector<std::string_view>& cells, std::size_t place,
                                  std::vector<BadCell>& bad) {
  switch (column_.dtype) {
    case DType::kFloat32: return decode_numbers<float>(cells, place, bad, parse_float);
    case DType::kFloat64:
      return as_float32_ ? decode_numbers<double>(cells, place, bad, parse_narrow)
                         : decode_numbers<double>(cells, place, bad, parse_real<double>);
    case DType::kInt32:
      return decode_numbers<std::int32_t>(cells, place, bad, parse_integer<std::int32_t>);
    case DType::kInt64:
      if (date_) return decode_dates(cells, place, bad);
      return decode_numbers<std::int64_t>(cells, place, bad, parse_integer<std::int64_t>);
    case DType::kUint8:
      return decode_numbers<std::uint8_t>(cells, place, bad, parse_integer<std::uint8_t>);
    case DType::kBool: return decode_numbers<bool>(cells, place, bad, parse_bool);
    default: break;
  }
  decoded_.text = cells;
}

void ColumnDecoder::decode_dates(const std::vector<std::string_view>& cells, std::size_t place,
                                 std::vector<BadCell>& bad) {
  decode_numbers<std::int64_t>(cells, place, bad, [this](std::string_view text, std::int64_t& out) {
    return date_->parse(text, out);
  });
}

// One value that cannot be parsed makes the whole cell bad. A cell that is marked as unknown is an
// empty list, except in a string column, which keeps the text.
void ColumnDecoder::decode_several(const std::vector<std::string_view>& cells, std::size_t place,
                                   std::vector<BadCell>& bad) {
  split(cells);
  if (column_.dtype == DType::kString) return;
  std::vector<BadCell> bad_pieces;
  decode_values(pieces_, place, bad_pieces);
  const auto splits = std::as_const(decoded_.splits).values<std::int64_t>();
  for (const BadCell& piece : bad_pieces) {
    const auto after = std::ranges::upper_bound(splits, static_cast<std::int64_t>(piece.row));
    bad.push_back({static_cast<std::size_t>(after - splits.begin()) - 1, place});
  }
}

void ColumnDecoder::append_to(std::vector<Tensor>& columns) const {
  if (decoded_.dtype != DType::kString) {
    columns.push_back(decoded_.values);
  } else {
    columns.push_back(
        Tensor::strings({static_cast<std::int64_t>(decoded_.text.size())},
                        std::vector<std::string>(decoded_.text.begin(), decoded_.text.end())));
  }
  if (decoded_.splits.defined()) columns.push_back(decoded_.splits);
  if (column_.missing_indicator) columns.push_back(missing_.values);
}

std::string ColumnDecoder::complaint(std::string_view cell) const {
  if (cell.data() == nullptr) return lacking_complaint();
  const std::string shown = printable(cell);
  if (label_ != nullptr && !label_->classes.empty())
    return str("\"", shown, "\" is none of the label's classes");
  if (label_ != nullptr)
    return str("\"", shown, "\" is none of the label's positive and negative values");
  if (is_unknown(cell)) return unknown_complaint(shown);
  if (column_.separator != 0 && cell.find(column_.separator) != cell.npos)
    return str(piece_complaint(cell), " (in the cell \"", shown, "\")");
  const DType dtype = as_float32_ ? DType::kFloat32 : column_.dtype;
  const NumberFault fault = number_fault(cell, dtype);
  if (binary_ && (fault == NumberFault::kNone || fault == NumberFault::kNotFinite))
    return str("\"", shown, "\" is not a label of two classes, which must lie in [0, 1]");
  return cell_complaint(cell);
}

std::string ColumnDecoder::cell_complaint(std::string_view value) const {
  const DType dtype = as_float32_ ? DType::kFloat32 : column_.dtype;
  std::int64_t seconds = 0;
  if (date_ && !date_->parse(value, seconds)) return date_->complaint(value);
  if (!date_ && (ids_.any() || number_fault(value, dtype) != NumberFault::kNone))
    return value_complaint(value, dtype);
  return id_complaint(value, ids_);
}

// The complaint about the first bad value in a cell of several.
std::string ColumnDecoder::piece_complaint(std::string_view cell) const {
  const DType dtype = as_float32_ ? DType::kFloat32 : column_.dtype;
  for (;;) {
    const std::size_t end = std::min(cell.find(column_.separator), cell.size());
    const std::string_view piece = cell.substr(0, end);
    std::int64_t id = 0;
    const bool fits = number_fault(piece, dtype) == NumberFault::kNone &&
                      (ids_.any() || (parse_integer(piece, id) && ids_.holds(id)));
    if (end == cell.size() || !fits) return cell_complaint(piece);
    cell.remove_prefix(end + 1);
  }
}

}  // namespace cairn
