// ColumnBuilder: the values of one column, as the events of a JSON parser bring them.
//
// It is a part of the decoders. One is kept for each column and used for one request after another,
// so that the memory for values is taken once.
//   Thread  one.
#pragma once
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/tensor/element.h"
#include "serving/api/tensors.h"

namespace cairn::serving {

// How deep lists and objects may lie within each other.
inline constexpr int kJsonLevelsMax = 32;

// How much of its limits a request has used, with all of its columns.
struct DecodeBudget {
  DecodeLimits limits;
  std::size_t elements = 0;
  std::size_t bytes = 0;
};

// Every function that takes an event returns false if the request is wrong; why() then says what
// was found and what is wanted.
class ColumnBuilder {
 public:
  // If `ragged`, the column's values of one example are a list of any length.
  //   Errors  InvalidArgument: the column has no leading dimension, or has too many.
  ColumnBuilder(ColumnSpec spec, bool ragged);

  const ColumnSpec& spec() const { return spec_; }
  const std::string& why() const { return why_; }

  // Before each request. `budget` must outlive the request.
  void reset(DecodeBudget& budget);

  // Each begins a value. Rows are values of one example each, whose lists are those of the shape
  // without its leading dimension. A flat row is a list of all values of the example, or one value.
  // A tensor is all examples as nested lists; with a `shape`, which the column's type admits, the
  // value may also be one list of all elements.
  void begin_row() { depth_ = base_ = 1; }
  bool begin_flat_row();
  void begin_tensor();
  void begin_tensor(const Shape& shape);

  bool list_begin();
  bool list_end();
  // Most values are ids and floats in a list that is open and has room: for these alone, inlined
  // into the parser. False: nothing was taken, and the function without "fast" decides.
  bool fast_integer(std::int64_t value) {
    return spec_.type.dtype == DType::kInt64 && put_in_list(value);
  }
  // `parsed` is the parser's own reading of `text`.
  bool fast_number(std::string_view text, double parsed) {
    if (spec_.type.dtype != DType::kFloat32) return false;
    float value = 0;
    if (!is_nearest_float(text, parsed, value)) {
      const char* const last = text.data() + text.size();
      const auto [end, error] = std::from_chars(text.data(), last, value);
      if (error != std::errc() || end != last) return false;
    }
    return put_in_list(value);
  }
  bool integer(std::int64_t value, std::string_view text);
  bool number(std::string_view text);  // any other number
  bool not_finite(std::string_view name);
  bool boolean(bool value);
  bool text(std::string_view value);
  // Whether the value that was begun has ended.
  bool ended() const { return depth_ == base_; }

  std::int64_t rows() const { return counts_[0]; }
  // Makes `rows` rows of the single row that there is.
  bool repeat(std::int64_t rows);
  // The values of the request; leaves none behind.
  Tensor take();
  Tensor take_splits();  // of a ragged column, before take()

 private:
  // Whether `parsed` rounds to the float nearest to `text`, which is then `value`. Boost.JSON has
  // the digits as a whole number, times or divided by a power of ten. In 16 characters of a number
  // with a point or an exponent there are at most 15 digits, and between these bounds the power is
  // at most 10^22: both are exact in a double, so that `parsed` is the double nearest to the text
  // (Clinger, "How to read floating point numbers accurately", PLDI 1990). The float nearest to
  // that is the one nearest to the text, unless the double lies halfway between two floats.
  static bool is_nearest_float(std::string_view text, double parsed, float& value) {
    constexpr std::uint64_t kBelowFloat = (std::uint64_t{1} << 29) - 1;
    constexpr std::uint64_t kHalfway = std::uint64_t{1} << 28;
    const double size = std::abs(parsed);
    if (text.size() > 16 || !(size >= 1e-7 && size <= 1e15)) return false;
    if ((std::bit_cast<std::uint64_t>(parsed) & kBelowFloat) == kHalfway) return false;
    value = static_cast<float>(parsed);
    return true;
  }
  template <typename T>
  bool put_in_list(T value) {
    if (depth_ != rank_ || !in_lists_ || buffer_.size() - used_ < sizeof(T)) [[unlikely]]
      return false;
    std::memcpy(buffer_.data() + used_, &value, sizeof(T));
    used_ += sizeof(T);
    ++counts_[static_cast<std::size_t>(rank_ - 1)];
    return true;
  }
  template <typename T>
  bool put(T value);
  template <typename Real>
  bool put_real(std::string_view text);
  bool put_half(std::string_view text);
  bool count_values(std::int64_t values);
  bool count_row();
  bool grow(std::size_t bytes);
  void give_back_large();
  bool refuse(std::string why);
  bool refuse_type(const std::string& found);
  Shape taken_shape() const;

  const ColumnSpec spec_;
  const bool ragged_;
  // The lists of a value: how many levels there are, how many values a list of each level has
  // (-1: the first one decides), and how many the open lists have so far.
  int rank_ = 0, depth_ = 0, base_ = 0;
  bool flat_rows_ = false;
  bool in_lists_ = false;  // values count when their list ends, not one by one
  std::array<std::int64_t, kJsonLevelsMax + 2> want_{}, counts_{};
  Shape given_;  // that begin_tensor() was given

  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
  std::vector<std::string> strings_;
  std::vector<std::int64_t> splits_;
  DecodeBudget* budget_ = nullptr;
  std::string why_;
};

}  // namespace cairn::serving
