// Why a text is no number of a type, for messages about cells.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace cairn {

enum class NumberFault : std::uint8_t {
  kNone,
  kNoNumber,
  kNotFinite,   // "nan" and "inf"
  kOutOfRange,  // a number, but too large for the type
  kNotWhole     // "0.0" or "1e3", of a type of whole numbers
};

// The fault of `text` as a value of `dtype`; kNone for a string.
NumberFault number_fault(std::string_view text, DType dtype);
// The same as a sentence: "\"2x\" is not of type int32".
std::string number_complaint(std::string_view text, DType dtype);
// The dtype to suggest for text that is kNotWhole: float32, or float64 if float32 would round it.
DType dtype_with_fractions(std::string_view text);

}  // namespace cairn
