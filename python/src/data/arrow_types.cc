// Which of Arrow's types are Cairn's, and what is told of the others.
#include <cstdlib>
#include <string_view>

#include "arrow_values.h"
#include "core/base/error.h"

namespace cairn::python {
namespace {

struct PlainType {
  char format;
  DType dtype;
  bool as_it_lies;
};
constexpr PlainType kPlain[] = {
    {'b', DType::kBool, false},   {'c', DType::kInt32, false},  {'C', DType::kUint8, true},
    {'s', DType::kInt32, false},  {'S', DType::kInt32, false},  {'i', DType::kInt32, true},
    {'I', DType::kInt64, false},  {'l', DType::kInt64, true},   {'L', DType::kInt64, false},
    {'e', DType::kFloat16, true}, {'f', DType::kFloat32, true}, {'g', DType::kFloat64, true},
    {'u', DType::kString, false}, {'U', DType::kString, false}, {'z', DType::kString, false},
    {'Z', DType::kString, false}, {'n', DType::kFloat32, false}};

// By the beginning of the format, the longer ones first.
struct OtherType {
  std::string_view format, name, cure;
};
constexpr OtherType kOther[] = {
    {"d:", "decimal", "cast it to float64"},
    {"w:", "fixed_size_binary", "cast it to binary"},
    {"td", "date", "cast it to int32 (days) or int64, or leave it out by columns=[...]"},
    {"tt", "time", "cast it to int64, or leave it out by columns=[...]"},
    {"ts", "timestamp", "cast it to int64 (seconds since 1970 are what date_part() takes)"},
    {"tD", "duration", "cast it to int64"},
    {"ti", "interval", "leave it out by columns=[...]"},
    {"+s", "struct", "make its fields columns of their own"},
    {"+m", "map", "make its values columns of their own"},
    {"+u", "union", "make its parts columns of their own"},
    {"+r", "run_end_encoded", "decode it"},
    {"+vl", "list_view", "cast it to list"},
    {"+vL", "large_list_view", "cast it to large_list"},
    {"+l", "list of lists", "flatten it"},
    {"+L", "list of lists", "flatten it"},
    {"+w", "list of lists", "flatten it"}};

[[noreturn]] void refuse(std::string_view format, const std::string& column) {
  for (const OtherType& each : kOther)
    if (format.starts_with(each.format))
      throw InvalidArgumentError(str("column \"", column, "\" is of Arrow's type ", each.name,
                                     " (\"", format,
                                     "\"), which Cairn does not have: ", each.cure));
  throw InvalidArgumentError(str("column \"", column, "\" is of Arrow's type \"", format,
                                 "\", which Cairn does not have: cast it to numbers, bool or "
                                 "texts, or leave it out by columns=[...]"));
}

ArrowType plain_type_of(const ArrowSchema& schema, const std::string& column) {
  ArrowType type;
  if (schema.dictionary != nullptr) {
    type = plain_type_of(*schema.dictionary, column);
    type.as_it_lies = false;
    return type;
  }
  const std::string_view format = schema.format;
  if (format == "vu" || format == "vz") {
    type.dtype = DType::kString;
    return type;
  }
  if (format.size() == 1)
    for (const PlainType& each : kPlain)
      if (format[0] == each.format) {
        type.dtype = each.dtype;
        type.as_it_lies = each.as_it_lies;
        return type;
      }
  refuse(format, column);
}

}  // namespace

ArrowType arrow_type_of(const ArrowSchema& schema, const std::string& column) {
  const std::string_view format = schema.format;
  const bool list = format == "+l" || format == "+L", fixed = format.starts_with("+w:");
  if (schema.dictionary != nullptr || (!list && !fixed)) return plain_type_of(schema, column);
  if (schema.n_children != 1)
    throw InvalidArgumentError(str("the Arrow stream of this table is damaged: column \"", column,
                                   "\" is a list of ", schema.n_children, " types"));
  ArrowType type = plain_type_of(*schema.children[0], column);
  type.lists = list ? ArrowType::Lists::kRagged : ArrowType::Lists::kFixed;
  type.wide_offsets = format == "+L";
  if (fixed) {
    type.width = std::strtoll(schema.format + 3, nullptr, 10);
    if (type.width < 1 || type.width > (std::int64_t{1} << 31))
      throw InvalidArgumentError(str("column \"", column, "\" is of lists of ", type.width,
                                     " values, at least 1 is wanted"));
  }
  return type;
}

}  // namespace cairn::python
