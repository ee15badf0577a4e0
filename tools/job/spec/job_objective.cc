#include "tools/job/spec/job_objective.h"

#include "core/graph/ops.h"
#include "nn/losses/losses.h"
#include "nn/losses/ranking_losses.h"
#include "nn/metrics/metrics.h"

namespace cairn::tools {

const std::vector<std::string>& objectives() {
  static const std::vector<std::string> all = {"binary", "regression", "multiclass", "ranking",
                                               "retrieval"};
  return all;
}

const std::vector<std::string>& regression_losses() {
  static const std::vector<std::string> all = {"mse", "huber", "mae"};
  return all;
}

const std::vector<std::string>& ranking_losses() {
  static const std::vector<std::string> all = {"softmax", "bpr"};
  return all;
}

Objective::Objective(const Job& job, LabelScale scale)
    : objective_(job.model.objective),
      loss_(job.model.loss),
      huber_delta_(static_cast<float>(job.model.huber_delta)),
      scale_(scale),
      label_(job.data.truth),
      class_weights_(job.model.class_weights.begin(), job.model.class_weights.end()) {}

Array Objective::truth(const Array& label) const {
  if (objective_ == "multiclass")
    return label.dtype() == DType::kInt64 ? label : cast(label, DType::kInt64);
  const Array number = label.dtype() == DType::kFloat32 ? label : cast(label, DType::kFloat32);
  if (label_.above) return cast(number > Array(static_cast<float>(*label_.above)), DType::kFloat32);
  if (label_.below) return cast(number < Array(static_cast<float>(*label_.below)), DType::kFloat32);
  return number;
}

Array Objective::losses(const Array& outputs, const Array& truth, const Array& groups) const {
  if (objective_ == "ranking")
    return loss_ == "bpr" ? nn::grouped_bpr(outputs, truth, groups)
                          : nn::grouped_softmax(outputs, truth, groups);
  if (objective_ == "multiclass")
    return weighted(nn::sparse_softmax_cross_entropy(outputs, truth), truth);
  if (objective_ == "binary") return weighted(nn::sigmoid_cross_entropy(outputs, truth), truth);
  const bool scaled = scale_.mean != 0 || scale_.stddev != 1;
  const Array learnt = scaled ? (truth - scale_.mean) * (1 / scale_.stddev) : truth;
  if (loss_ == "huber") return nn::huber(outputs, learnt, huber_delta_ / scale_.stddev);
  return loss_ == "mae" ? nn::mean_absolute_error(outputs, learnt)
                        : nn::mean_squared_error(outputs, learnt);
}

// A label between 0 and 1 counts as much of each class as it is.
Array Objective::weighted(const Array& losses, const Array& truth) const {
  if (class_weights_.empty()) return losses;
  if (objective_ == "binary")
    return losses * (truth * (class_weights_[1] - class_weights_[0]) + class_weights_[0]);
  const auto n = static_cast<std::int64_t>(class_weights_.size());
  return losses * gather(Array(Tensor::of<float>({n}, class_weights_)), truth);
}

Array Objective::prediction(const Array& outputs) const {
  if (objective_ == "multiclass") return softmax(outputs);
  if (objective_ == "binary") return nn::probability(outputs);
  const Array number = reshape(outputs, {-1});
  return scale_.mean == 0 && scale_.stddev == 1 ? number : number * scale_.stddev + scale_.mean;
}

}  // namespace cairn::tools
