// LabelRange: which numbers a label of records or examples may be.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>

#include "core/base/error.h"

namespace cairn {

struct LabelRange {
  bool binary = false;       // in [0, 1]
  std::int64_t classes = 0;  // above 0, instead: a whole number below it

  bool any() const { return !binary && classes == 0; }
  // False if it is NaN.
  bool holds(double label) const {
    if (classes == 0) return !binary || (label >= 0 && label <= 1);
    return label >= 0 && label < static_cast<double>(classes) && label == std::floor(label);
  }
  // Ends a message about a label outside of the range: "is not " and this text.
  std::string text() const {
    if (classes == 0) return "a label of two classes, which must lie in [0, 1]";
    return str("one of ", classes, " classes, which are the whole numbers from 0 to ", classes - 1);
  }
};

// As a schema with binary_label and label_classes says it.
//   Errors  InvalidArgument: label_classes below 0 or above 65,535.
template <typename Schema>
LabelRange label_range(const Schema& schema) {
  constexpr std::int64_t kClassesMax = 65'535;
  if (schema.label_classes < 0 || schema.label_classes > kClassesMax)
    throw InvalidArgumentError(
        str("label_classes is ", schema.label_classes, ", it must lie in [0, ", kClassesMax, "]"));
  return {schema.binary_label, schema.label_classes};
}

}  // namespace cairn
