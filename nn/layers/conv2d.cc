#include "nn/layers/conv2d.h"

#include <utility>

#include "core/graph/ops.h"

namespace cairn::nn {
namespace {

void check_at_least_one(const LayerName& layer, const char* what,
                        const std::array<std::int64_t, 2>& sizes) {
  if (sizes[0] < 1 || sizes[1] < 1)
    throw InvalidArgumentError(str("layer \"", layer.get(), "\": ", what,
                                   " must be at least 1 x 1, got ", sizes[0], " x ", sizes[1]));
}

void check_image(const LayerName& layer, const Array& x) {
  if (!x.defined() || x.rank() != 4 || x.dtype() != DType::kFloat32)
    throw InvalidArgumentError(str("layer \"", layer.get(),
                                   "\" wants float32[batch, height, width, channels], got ",
                                   x.defined() ? x.type().to_string() : "nothing"));
}

Pool2dOptions pool_of(const Pooling2DOptions& options, const LayerName& layer) {
  Pool2dOptions pool{options.pool_size, options.strides.value_or(options.pool_size),
                     options.padding};
  check_at_least_one(layer, "pool_size", pool.window);
  check_at_least_one(layer, "strides", pool.strides);
  return pool;
}

}  // namespace

Conv2D::Conv2D(Conv2DOptions options)
    : options_(std::move(options)), name_(options_.name, "conv2d") {
  if (options_.filters < 1)
    throw InvalidArgumentError(
        str("layer \"", name_.get(), "\": filters must be at least 1, got ", options_.filters));
  check_at_least_one(name_, "kernel_size", options_.kernel_size);
  check_at_least_one(name_, "strides", options_.strides);
  check_at_least_one(name_, "dilations", options_.dilations);
}

std::vector<Variable> Conv2D::make(VariableCreator& creator, std::int64_t channels) const {
  const auto [height, width] = options_.kernel_size;
  std::vector<Variable> made;
  VariableSpec kernel{.name = name_.get() + "/kernel",
                      .shape = {height, width, channels, options_.filters}};
  kernel.initializer = options_.kernel_initializer.resolve(
      height * width * channels, height * width * options_.filters, options_.seed);
  made.push_back(creator.create_variable(std::move(kernel)));
  if (options_.use_bias)
    made.push_back(creator.create_variable({.name = name_.get() + "/bias",
                                            .shape = {options_.filters},
                                            .initializer = options_.bias_initializer}));
  return made;
}

Array Conv2D::operator()(const Array& x) const {
  check_image(name_, x);
  const std::int64_t channels = x.shape()[3];
  if (channels == Shape::kUnknown)
    throw InvalidArgumentError(str("layer \"", name_.get(),
                                   "\" must know the number of channels, got ",
                                   x.type().to_string()));
  const auto& variables =
      variables_.in_scope([&](VariableCreator& creator) { return make(creator, channels); });
  if (variables[0].shape()[2] != channels)
    throw InvalidArgumentError(str("layer \"", name_.get(), "\" was built for ",
                                   variables[0].shape()[2], " channels, got ",
                                   x.type().to_string()));
  const Array kernel = variables[0].read();
  Array y = conv2d(x, kernel, {options_.strides, options_.padding, options_.dilations});
  add_weight_loss(options_.kernel_regularizer, variables[0], kernel);
  if (options_.use_bias) {
    const Array bias = variables[1].read();
    y = y + bias;
    add_weight_loss(options_.bias_regularizer, variables[1], bias);
  }
  y = options_.activation(y);
  add_activity_loss(options_.activity_regularizer, name_.get(), y);
  return y;
}

MaxPooling2D::MaxPooling2D(Pooling2DOptions options) : name_(options.name, "max_pooling2d") {
  options_ = pool_of(options, name_);
}

Array MaxPooling2D::operator()(const Array& x) const {
  check_image(name_, x);
  return max_pool2d(x, options_);
}

AveragePooling2D::AveragePooling2D(Pooling2DOptions options)
    : name_(options.name, "average_pooling2d") {
  options_ = pool_of(options, name_);
}

Array AveragePooling2D::operator()(const Array& x) const {
  check_image(name_, x);
  return avg_pool2d(x, options_);
}

GlobalAveragePooling2D::GlobalAveragePooling2D(std::string name)
    : name_(std::move(name), "global_average_pooling2d") {}

Array GlobalAveragePooling2D::operator()(const Array& x) const {
  check_image(name_, x);
  return reduce_mean(x, {1, 2});
}

}  // namespace cairn::nn
