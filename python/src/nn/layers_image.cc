// cairn.nn: layers over images.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "layer_object.h"
#include "nn/nn.h"

namespace cairn::python {
namespace {

Padding padding_of(const std::string& name) {
  if (name == "valid" || name == "VALID") return Padding::kValid;
  if (name == "same" || name == "SAME") return Padding::kSame;
  throw InvalidArgumentError(str("padding is \"valid\" or \"same\", not \"", name, "\""));
}

void bind_conv2d(nb::module_& m) {
  layer_class<nn::Conv2D>(m, "Conv2D", R"(activation(conv2d(x, kernel) + bias).

>>> cairn.nn.Conv2D(8, 3, padding="same")(np.ones((2, 5, 5, 1), "float32")).shape
(2, 5, 5, 8))")
      .def(
          "__init__",
          [](LayerOf<nn::Conv2D>* self, std::int64_t filters, const Sizes& kernel_size,
             const Sizes& strides, const std::string& padding, const Sizes& dilations,
             ActivationLike activation, bool use_bias, InitializerLike kernel_initializer,
             InitializerLike bias_initializer, RegularizerLike kernel_regularizer,
             RegularizerLike bias_regularizer, RegularizerLike activity_regularizer,
             const std::string& name, std::uint64_t seed) {
            Kept kept;
            nn::Conv2DOptions options{
                .filters = filters,
                .kernel_size = sizes_of(kernel_size),
                .strides = sizes_of(strides),
                .padding = padding_of(padding),
                .dilations = sizes_of(dilations),
                .activation = activation.in(kept),
                .use_bias = use_bias,
                .kernel_initializer = kernel_initializer.kernel(kept),
                .bias_initializer = bias_initializer.value(filters, filters, seed),
                .name = name,
                .seed = seed,
                .kernel_regularizer = kernel_regularizer.in(kept),
                .bias_regularizer = bias_regularizer.in(kept),
                .activity_regularizer = activity_regularizer.in(kept)};
            make_layer(self, nn::Conv2D(std::move(options)), std::move(kept));
          },
          "filters"_a, "kernel_size"_a, "strides"_a = 1, "padding"_a = "valid", "dilations"_a = 1,
          "activation"_a = nb::none(), "use_bias"_a = true, nb::kw_only(),
          "kernel_initializer"_a = nb::none(), "bias_initializer"_a = nb::none(),
          "kernel_regularizer"_a = nb::none(), "bias_regularizer"_a = nb::none(),
          "activity_regularizer"_a = nb::none(), "name"_a = "", "seed"_a = 0);
}

template <typename L>
void bind_pooling(nb::module_& m, const char* name, const char* doc) {
  layer_class<L>(m, name, doc)
      .def(
          "__init__",
          [](LayerOf<L>* self, const Sizes& pool_size, const std::optional<Sizes>& strides,
             const std::string& padding, const std::string& given) {
            nn::Pooling2DOptions options{
                .pool_size = sizes_of(pool_size), .padding = padding_of(padding), .name = given};
            if (strides) options.strides = sizes_of(*strides);
            make_layer(self, L(std::move(options)), {});
          },
          "pool_size"_a = 2, "strides"_a = nb::none(), "padding"_a = "valid", nb::kw_only(),
          "name"_a = "");
}

}  // namespace

void bind_image_layers(nb::module_& m) {
  bind_conv2d(m);
  bind_pooling<nn::MaxPooling2D>(m, "MaxPooling2D", R"(The largest of each window.

>>> cairn.nn.MaxPooling2D()(np.ones((2, 4, 4, 3), "float32")).shape
(2, 2, 2, 3))");
  bind_pooling<nn::AveragePooling2D>(m, "AveragePooling2D", R"(The mean of each window.

>>> cairn.nn.AveragePooling2D()(np.ones((2, 4, 4, 3), "float32")).shape
(2, 2, 2, 3))");
  layer_class<nn::GlobalAveragePooling2D>(m, "GlobalAveragePooling2D",
                                          R"(The mean of each channel over the image.

>>> cairn.nn.GlobalAveragePooling2D()(np.ones((2, 4, 4, 3), "float32")).shape
(2, 3))")
      .def(
          "__init__",
          [](LayerOf<nn::GlobalAveragePooling2D>* self, const std::string& name) {
            make_layer(self, nn::GlobalAveragePooling2D(name), {});
          },
          "name"_a = "");
}

}  // namespace cairn::python
