// SeenLabels records whether labels of both classes have occurred. Some metrics are undefined
// without them: the AUC of one class is not a number.
//   Thread  one.
#pragma once
#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace cairn {

namespace nn {
enum class NeededLabels : std::uint8_t;
}
class Dataset;

class SeenLabels {
 public:
  // Positive are those above one half, as in nn/metrics/metrics.h. Labels of other kinds than
  // numbers are taken for both.
  void add(const Tensor& labels);
  bool have(nn::NeededLabels needed) const;
  // "the labels of these 40 examples are all 0", for errors.
  std::string text() const;

 private:
  std::int64_t count_ = 0;
  bool positive_ = false, negative_ = false;
};

// Reads labels of `batches` until those are there, at most `batches_max` of them. `label`: a
// column; empty: the dataset's own.
SeenLabels seen_labels(const Dataset& batches, const std::string& label, nn::NeededLabels needed,
                       std::int64_t batches_max);

}  // namespace cairn
