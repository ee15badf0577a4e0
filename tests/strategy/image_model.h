// A small convolutional network that separates lying stripes from standing ones: the second model
// by which strategies in step are compared. It is smooth everywhere: at a kink, of relu or of a
// maximum, the last bit of a sum decides by which of two gradients the training goes on, and two
// ways of summing that are equally right part by far more than by their rounding.
#pragma once
#include "core/base/random.h"
#include "core/graph/ops.h"
#include "core/graph/ops_model.h"
#include "data/dataset/dataset.h"
#include "nn/nn.h"
#include "tests/core/noise.h"

namespace cairn::testing {

inline constexpr std::int64_t kImageBatch = 16;

// [8, 8, 1] of noise, with one row or one column that is brighter.
inline Dataset images(std::int64_t batch) {
  constexpr std::int64_t kImages = 512, kSide = 8;
  Tensor image = noise({kImages, kSide, kSide, 1}, 1), label(DType::kFloat32, {kImages, 1});
  Random random(2);
  for (std::int64_t i = 0; i < kImages; ++i) {
    const bool stands = random.below(2) == 1;
    const auto at = static_cast<std::int64_t>(random.below(kSide));
    for (std::int64_t k = 0; k < kSide; ++k) {
      const std::int64_t pixel = stands ? k * kSide + at : at * kSide + k;
      image.mutable_values<float>()[static_cast<std::size_t>(i * kSide * kSide + pixel)] += 1;
    }
    label.mutable_values<float>()[static_cast<std::size_t>(i)] = stands ? 1.0f : 0.0f;
  }
  return Dataset::from_tensor_slices({{"image", image}, {"label", label}}, "label")
      .shuffle(kImages, 3)
      .repeat()
      .batch(batch);
}

struct ImageModel {
  static const Dataset& batches() {
    static const Dataset made = images(kImageBatch);
    return made;
  }
  static const Dataset& halves() {
    static const Dataset made = images(kImageBatch / 2);
    return made;
  }

  Array losses(const Array& image, const Array& label) const {
    const Array seen = tanh(conv2d(image, filter.read()));
    const Array logits = dense(reshape(avg_pool2d(seen), {Shape::kUnknown, 3 * 3 * 4}));
    return nn::sigmoid_cross_entropy(logits, label);
  }
  Array update_by(const Array& loss) const {
    optimizer.minimize(loss);
    return loss;
  }
  Array train(Iterator input) const {
    auto [features, label] = input.get_next();
    return update_by(mean(losses(features["image"], label)));
  }
  // Its examples' part of the mean over a global batch.
  Array train_in_sync(Iterator input) const {
    auto [features, label] = input.get_next();
    return update_by(part_of_mean(features["image"], label));
  }
  // On one device, in the order in which two replicas sum.
  Array train_by_halves(Iterator input) const {
    auto [features, label] = input.get_next();
    constexpr std::int64_t kHalf = kImageBatch / 2;
    const auto half = [&, label = label, image = features["image"]](std::int64_t begin) {
      return part_of_mean(slice(image, 0, begin, kHalf), slice(label, 0, begin, kHalf));
    };
    return update_by(half(0) + half(kHalf));
  }
  Array part_of_mean(const Array& image, const Array& label) const {
    return sum(losses(image, label)) / static_cast<float>(kImageBatch);
  }

  Variable filter = current_variable_creator().create_variable(
      {.name = "filter", .shape = {3, 3, 1, 4}, .initializer = Initializer::glorot_uniform(9, 36)});
  nn::Dense dense{{.units = 1}};
  nn::Sgd optimizer{{.learning_rate = 0.1f, .momentum = 0.9f}};
};

}  // namespace cairn::testing
