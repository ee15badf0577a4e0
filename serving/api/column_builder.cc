#include "serving/api/column_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "data/feature/numbers.h"
#include "data/feature/printable.h"

namespace cairn::serving {
namespace {

// Buffers above this are given back after a request, so that one large request does not hold its
// memory for ever.
constexpr std::size_t kKeptBytesMax = std::size_t{1} << 20;
constexpr std::size_t kFirstBytes = 1024;

const char* wanted_value(DType dtype) {
  switch (dtype) {
    case DType::kBool: return "true or false is";
    case DType::kString: return "a text is";
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint8: return "a whole number is";
    default: return "a number is";
  }
}

}  // namespace

ColumnBuilder::ColumnBuilder(ColumnSpec spec, bool ragged)
    : spec_(std::move(spec)), ragged_(ragged) {
  const int rank = spec_.type.shape.rank();
  if (rank < 1 || rank + 1 >= kJsonLevelsMax)
    throw InvalidArgumentError(str("column \"", spec_.name, "\" is ", spec_.type.to_string(),
                                   ": a served column has a leading dimension, its examples, and "
                                   "at most ",
                                   kJsonLevelsMax - 2, " dimensions"));
}

void ColumnBuilder::reset(DecodeBudget& budget) {
  budget_ = &budget;
  used_ = 0;
  give_back_large();
  strings_.clear();
  splits_.clear();
  why_.clear();
  depth_ = base_ = 0;
  flat_rows_ = false;
  given_ = Shape();
  counts_[0] = 0;
  const Shape& shape = spec_.type.shape;
  rank_ = shape.rank() + (ragged_ ? 1 : 0);
  in_lists_ = rank_ > 1;
  want_[0] = -1;
  if (ragged_) {
    splits_.push_back(0);
    want_[1] = -1;
    for (int axis = 1; axis < shape.rank(); ++axis)
      want_[static_cast<std::size_t>(axis) + 1] = shape[axis];
  } else {
    for (int axis = 1; axis < shape.rank(); ++axis)
      want_[static_cast<std::size_t>(axis)] = shape[axis];
  }
}

void ColumnBuilder::give_back_large() {
  if (buffer_.size() > kKeptBytesMax) std::vector<std::byte>().swap(buffer_);
  if (splits_.capacity() > kKeptBytesMax / sizeof(std::int64_t))
    std::vector<std::int64_t>().swap(splits_);
}

bool ColumnBuilder::begin_flat_row() {
  depth_ = base_ = 1;
  if (flat_rows_) return true;
  const Shape row = spec_.type.shape.without_front();
  if (ragged_ ? row.rank() > 0 : row.rank() > 1 && !row.known())
    return refuse(str("the column is ", spec_.type.to_string(),
                      ", whose rows are not one list of a known length: send it to :predict"));
  flat_rows_ = true;
  if (!ragged_) want_[1] = row.rank() == 1 ? row[0] : row.elements();
  rank_ = 2;
  in_lists_ = true;
  return true;
}

void ColumnBuilder::begin_tensor() { depth_ = base_ = 0; }

void ColumnBuilder::begin_tensor(const Shape& shape) {
  depth_ = base_ = 0;
  given_ = shape;
  rank_ = shape.rank();
  in_lists_ = true;
  for (int axis = 0; axis < rank_; ++axis) want_[static_cast<std::size_t>(axis)] = shape[axis];
}

bool ColumnBuilder::list_begin() {
  if (depth_ >= rank_)
    return refuse(str("a list is there, and ", wanted_value(spec_.type.dtype),
                      " wanted: the column is ", spec_.type.to_string()));
  counts_[static_cast<std::size_t>(depth_)] = 0;
  ++depth_;
  return true;
}

bool ColumnBuilder::list_end() {
  const auto level = static_cast<std::size_t>(depth_ - 1);
  const std::int64_t count = counts_[level];
  const bool is_ragged_list = ragged_ && level == 1;
  if (is_ragged_list) {
    splits_.push_back(splits_.back() + count);
    budget_->bytes += sizeof(std::int64_t);
  } else if (want_[level] < 0) {
    want_[level] = count;
  } else if (want_[level] != count) {
    const bool is_empty_tensor =
        level == 0 && count == 0 && given_.rank() > 0 && given_.elements() == 0;
    if (!is_empty_tensor)
      return refuse(str("a list of ", count, " is there, and one of ", want_[level],
                        " is wanted: the column is ", spec_.type.to_string(),
                        given_.rank() > 0 ? str(", the shape given ", given_.to_string()) : ""));
  }
  if (depth_ == rank_ && in_lists_ && !count_values(count)) return false;
  --depth_;
  if (depth_ == 0) return true;
  ++counts_[static_cast<std::size_t>(depth_ - 1)];
  return depth_ > 1 || count_row();
}

bool ColumnBuilder::count_row() {
  if (counts_[0] <= budget_->limits.examples_max || given_.rank() > 0) return true;
  return refuse(str("there are more than ", budget_->limits.examples_max, " examples"));
}

// Values count when their list ends; until then grow() bounds them.
bool ColumnBuilder::count_values(std::int64_t values) {
  const auto count = static_cast<std::size_t>(values);
  budget_->elements += count;
  budget_->bytes += count * dtype_bytes(spec_.type.dtype);
  if (budget_->elements > budget_->limits.elements_max) [[unlikely]]
    return refuse(str("the request has more than ", budget_->limits.elements_max, " values"));
  if (budget_->bytes > budget_->limits.bytes_max) [[unlikely]]
    return refuse(str("the request's values take more than ", budget_->limits.bytes_max, " bytes"));
  return true;
}

bool ColumnBuilder::grow(std::size_t bytes) {
  if (used_ / bytes >= budget_->limits.elements_max)
    return refuse(str("the request has more than ", budget_->limits.elements_max, " values"));
  if (used_ + bytes > budget_->limits.bytes_max)
    return refuse(str("the request's values take more than ", budget_->limits.bytes_max, " bytes"));
  buffer_.resize(std::max({2 * buffer_.size(), used_ + bytes, kFirstBytes}));
  return true;
}

template <typename T>
bool ColumnBuilder::put(T value) {
  if (depth_ != rank_) [[unlikely]] {
    if (given_.rank() > 0 && depth_ == 1 && counts_[0] == 0) {  // one list of all elements
      rank_ = 1;
      want_[0] = given_.elements();
    } else if (flat_rows_ && depth_ == 1) {  // a value that stands for a list of one
      return list_begin() && put(value) && list_end();
    } else {
      return refuse(str("a single value is there, and a list is wanted: the column is ",
                        spec_.type.to_string(), ragged_ ? ", ragged" : ""));
    }
  }
  if (buffer_.size() - used_ < sizeof(T) && !grow(sizeof(T))) [[unlikely]]
    return false;
  std::memcpy(buffer_.data() + used_, &value, sizeof(T));
  used_ += sizeof(T);
  ++counts_[static_cast<std::size_t>(rank_ - 1)];
  return in_lists_ || (count_values(1) && count_row());
}

bool ColumnBuilder::integer(std::int64_t value, std::string_view text) {
  // Whole numbers up to these are exact, and "-0" keeps its sign only as a text.
  constexpr std::int64_t kFloatMax = std::int64_t{1} << 24, kDoubleMax = std::int64_t{1} << 53;
  const bool is_plain = value != 0 || text.front() != '-';
  switch (spec_.type.dtype) {
    case DType::kInt64: return put(value);
    case DType::kFloat32:
      if (is_plain && value >= -kFloatMax && value <= kFloatMax)
        return put(static_cast<float>(value));
      return put_real<float>(text);
    case DType::kFloat64:
      if (is_plain && value >= -kDoubleMax && value <= kDoubleMax)
        return put(static_cast<double>(value));
      return put_real<double>(text);
    case DType::kInt32:
      if (std::in_range<std::int32_t>(value)) return put(static_cast<std::int32_t>(value));
      break;
    case DType::kUint8:
      if (std::in_range<std::uint8_t>(value)) return put(static_cast<std::uint8_t>(value));
      break;
    case DType::kBfloat16:
    case DType::kFloat16: return put_half(text);
    case DType::kBool:
    case DType::kString: return refuse_type(str("the number ", printable(text)));
  }
  return refuse(str(printable(text), " is beyond the range of ", dtype_name(spec_.type.dtype)));
}

bool ColumnBuilder::number(std::string_view text) {
  switch (spec_.type.dtype) {
    case DType::kFloat32: return put_real<float>(text);
    case DType::kFloat64: return put_real<double>(text);
    case DType::kBfloat16:
    case DType::kFloat16: return put_half(text);
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint8:
      if (text.find_first_of(".eE") == text.npos)
        return refuse(
            str(printable(text), " is beyond the range of ", dtype_name(spec_.type.dtype)));
      return refuse(str(printable(text), " is written with a point or an exponent, and ",
                        dtype_name(spec_.type.dtype), " takes whole numbers"));
    case DType::kBool:
    case DType::kString: break;
  }
  return refuse_type(str("the number ", printable(text)));
}

template <typename Real>
bool ColumnBuilder::put_real(std::string_view text) {
  Real value = 0;
  if (!parse_real(text, value))
    return refuse(str(printable(text), " is beyond the range of ", dtype_name(spec_.type.dtype)));
  return put(value);
}

bool ColumnBuilder::put_half(std::string_view text) {
  float value = 0;
  const bool is_half = spec_.type.dtype == DType::kFloat16;
  const bool is_read = parse_real(text, value);
  const std::uint16_t bits = is_half ? to_float16(value) : to_bfloat16(value);
  if (!is_read || !std::isfinite(is_half ? from_float16(bits) : from_bfloat16(bits)))
    return refuse(str(printable(text), " is beyond the range of ", dtype_name(spec_.type.dtype)));
  return put(bits);
}

bool ColumnBuilder::not_finite(std::string_view name) {
  const float value = name == "NaN"        ? std::numeric_limits<float>::quiet_NaN()
                      : name == "Infinity" ? std::numeric_limits<float>::infinity()
                                           : -std::numeric_limits<float>::infinity();
  switch (spec_.type.dtype) {
    case DType::kFloat32: return put(value);
    case DType::kFloat64: return put(static_cast<double>(value));
    case DType::kBfloat16: return put(to_bfloat16(value));
    case DType::kFloat16: return put(to_float16(value));
    default: return refuse_type(std::string(name));
  }
}

bool ColumnBuilder::boolean(bool value) {
  if (spec_.type.dtype == DType::kBool) return put(value);
  // As TensorFlow Serving has it for the features of examples.
  if (flat_rows_ && spec_.type.dtype == DType::kInt64)
    return put(static_cast<std::int64_t>(value ? 1 : 0));
  return refuse_type(value ? "true" : "false");
}

bool ColumnBuilder::text(std::string_view value) {
  if (spec_.type.dtype != DType::kString) {
    const bool is_name = value == "NaN" || value == "Infinity" || value == "-Infinity";
    if (is_name && budget_->limits.allow_nan) return not_finite(value);
    return refuse_type(str("the text \"", printable(value), "\""));
  }
  budget_->bytes += sizeof(std::string) + value.size();
  if (budget_->bytes > budget_->limits.bytes_max)
    return refuse(str("the request's values take more than ", budget_->limits.bytes_max, " bytes"));
  // The buffer's byte counts the value, so that put() looks after levels and counts for texts too.
  if (!put(std::byte{})) return false;
  strings_.emplace_back(value);
  return true;
}

bool ColumnBuilder::repeat(std::int64_t rows) {
  const auto times = static_cast<std::size_t>(rows);
  const std::size_t values = strings_.empty()
                                 ? used_ / std::max<std::size_t>(1, dtype_bytes(spec_.type.dtype))
                                 : strings_.size();
  std::size_t bytes = used_;
  for (const std::string& text : strings_) bytes += sizeof(std::string) + text.size();
  const DecodeLimits& limits = budget_->limits;
  if (values > 0 && (times > limits.elements_max / values || times > limits.bytes_max / bytes))
    return refuse(str("as a feature of the context, in ", rows,
                      " examples, its values are more than the request may have"));
  budget_->elements += (times - 1) * values;
  budget_->bytes += (times - 1) * bytes;
  if (budget_->elements > limits.elements_max || budget_->bytes > limits.bytes_max)
    return refuse("with the context's features in each example, the request has too many values");
  const std::size_t one = used_, one_text = strings_.size();
  if (buffer_.size() < one * times) buffer_.resize(one * times);
  for (std::size_t i = 1; i < times; ++i) {
    if (one > 0) std::memcpy(buffer_.data() + i * one, buffer_.data(), one);
    for (std::size_t k = 0; k < one_text; ++k) strings_.push_back(std::string(strings_[k]));
    if (ragged_) splits_.push_back(splits_.back() + splits_[1]);
  }
  used_ = one * times;
  counts_[0] = rows;
  return true;
}

Shape ColumnBuilder::taken_shape() const {
  if (given_.rank() > 0) return given_;
  std::vector<std::int64_t> dims = {ragged_ ? splits_.back() : counts_[0]};
  for (int axis = 1; axis < spec_.type.shape.rank(); ++axis) {
    const auto level = static_cast<std::size_t>(axis) + (ragged_ ? 1 : 0);
    const std::int64_t known = spec_.type.shape[axis];
    // Where no list came that could have decided it, there are no values either.
    dims.push_back(known >= 0 ? known : std::max<std::int64_t>(0, want_[level]));
  }
  return Shape(std::move(dims));
}

Tensor ColumnBuilder::take() {
  if (spec_.type.dtype == DType::kString)
    return Tensor::strings(taken_shape(), std::exchange(strings_, {}));
  Tensor made(spec_.type.dtype, taken_shape());
  CAIRN_CHECK(made.bytes() == used_, used_, " bytes of values for ", made.type().to_string());
  if (used_ > 0) std::memcpy(made.mutable_raw(), buffer_.data(), used_);
  give_back_large();
  return made;
}

Tensor ColumnBuilder::take_splits() {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(splits_.size())}, splits_);
}

bool ColumnBuilder::refuse(std::string why) {
  why_ = std::move(why);
  return false;
}

bool ColumnBuilder::refuse_type(const std::string& found) {
  return refuse(str(found, " is there, and ", wanted_value(spec_.type.dtype),
                    " wanted: the column is ", spec_.type.to_string()));
}

}  // namespace cairn::serving
