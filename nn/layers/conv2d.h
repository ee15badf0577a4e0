// Layers over images: convolution and pooling. Images are float32 [batch, height, width, channels].
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/ops_model.h"
#include "nn/base/initializers.h"
#include "nn/base/layer.h"
#include "nn/base/layer_name.h"
#include "nn/layers/activations.h"
#include "nn/layers/regularizers.h"

namespace cairn::nn {

// The reference's arguments, with its defaults.
struct Conv2DOptions {
  std::int64_t filters = 0;                          // required: channels of the result
  std::array<std::int64_t, 2> kernel_size = {0, 0};  // required: height, width
  std::array<std::int64_t, 2> strides = {1, 1};
  Padding padding = Padding::kValid;
  std::array<std::int64_t, 2> dilations = {1, 1};
  Activation activation = {};
  bool use_bias = true;
  KernelInitializer kernel_initializer = {};  // default: Glorot uniform
  Initializer bias_initializer = {};          // zeros
  std::string name = "";                      // "conv2d", or as the model names it
  std::uint64_t seed = 0;                     // of kernel_initializer, if that is a rule
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of the output, divided by the size of the batch
};

// activation(conv2d(x, kernel) + bias): [b, h, w, c] -> [b, h', w', filters], sizes as
// core/graph/ops_model.h has them. Variables NAME/kernel [height, width, c, filters] and NAME/bias
// [filters]. The fans of the initial kernel are height · width · c and height · width · filters.
//   Errors  InvalidArgument: filters, kernel_size, strides or dilations below 1; x no float32
//           [batch, height, width, channels] with channels known; else those of conv2d().
class Conv2D {
 public:
  explicit Conv2D(Conv2DOptions options);
  Array operator()(const Array& x) const;
  // InvalidArgument: the layer was not called in this scope yet.
  std::vector<Variable> variables() const { return variables_.made(name_.get()); }
  const LayerName& layer_name() const { return name_; }

 private:
  std::vector<Variable> make(VariableCreator& creator, std::int64_t channels) const;
  Conv2DOptions options_;
  LayerName name_;
  LayerVariables variables_;
};

struct Pooling2DOptions {
  std::array<std::int64_t, 2> pool_size = {2, 2};
  std::optional<std::array<std::int64_t, 2>> strides = {};  // default: pool_size
  Padding padding = Padding::kValid;
  std::string name = "";  // "max_pooling2d" or "average_pooling2d", or as the model names it
};

// The largest, or the mean, of each window, channel by channel: [b, h, w, c] -> [b, h', w', c].
// With Padding::kSame what lies outside of the image does not count.
//   Errors  those of max_pool2d() and avg_pool2d().
class MaxPooling2D {
 public:
  explicit MaxPooling2D(Pooling2DOptions options = {});
  Array operator()(const Array& x) const;
  const LayerName& layer_name() const { return name_; }

 private:
  Pool2dOptions options_;
  LayerName name_;
};

class AveragePooling2D {
 public:
  explicit AveragePooling2D(Pooling2DOptions options = {});
  Array operator()(const Array& x) const;
  const LayerName& layer_name() const { return name_; }

 private:
  Pool2dOptions options_;
  LayerName name_;
};

// The mean of each channel over the image: [b, h, w, c] -> [b, c].
//   Errors  InvalidArgument: x has another rank.
class GlobalAveragePooling2D {
 public:
  explicit GlobalAveragePooling2D(std::string name = "");
  Array operator()(const Array& x) const;
  const LayerName& layer_name() const { return name_; }

 private:
  LayerName name_;
};

}  // namespace cairn::nn
