#include "model/seen_labels.h"

#include <algorithm>

#include "core/base/error.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "nn/metrics/metrics.h"

namespace cairn {
namespace {

template <typename T>
void add_values(const Tensor& labels, bool& positive, bool& negative) {
  const auto is_positive = [](T value) { return static_cast<double>(value) > 0.5; };
  const auto values = labels.values<T>();
  const auto count = std::ranges::count_if(values, is_positive);
  positive = positive || count > 0;
  negative = negative || count < std::ssize(values);
}

}  // namespace

void SeenLabels::add(const Tensor& labels) {
  count_ += labels.elements();
  switch (labels.dtype()) {
    case DType::kFloat32: return add_values<float>(labels, positive_, negative_);
    case DType::kFloat64: return add_values<double>(labels, positive_, negative_);
    case DType::kInt32: return add_values<std::int32_t>(labels, positive_, negative_);
    case DType::kInt64: return add_values<std::int64_t>(labels, positive_, negative_);
    case DType::kUint8: return add_values<std::uint8_t>(labels, positive_, negative_);
    case DType::kBool: return add_values<bool>(labels, positive_, negative_);
    default: positive_ = negative_ = true;
  }
}

bool SeenLabels::have(nn::NeededLabels needed) const {
  if (needed == nn::NeededLabels::kAny) return true;
  return positive_ && (negative_ || needed == nn::NeededLabels::kPositive);
}

std::string SeenLabels::text() const {
  return str("the labels of these ", count_, " examples are all ", positive_ ? 1 : 0);
}

SeenLabels seen_labels(const Dataset& batches, const std::string& label, nn::NeededLabels needed,
                       std::int64_t batches_max) {
  SeenLabels seen;
  const auto iterator = open(batches);
  const ElementSpec& spec = iterator->element_spec();
  const std::size_t column = spec.find(label.empty() ? spec.label : label);
  for (std::int64_t i = 0; i < batches_max && !seen.have(needed); ++i) {
    const auto batch = iterator->next();
    if (!batch) break;
    seen.add((*batch)[column]);
  }
  return seen;
}

}  // namespace cairn
