// Options of layers: activations, initial values and regularizers, each by name, as an object, or
// as a function of Python's.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kept.h"
#include "nn/base/initializers.h"
#include "nn/layers/activations.h"
#include "nn/layers/embedding.h"
#include "nn/layers/layers.h"
#include "nn/layers/regularizers.h"
#include "values.h"

namespace cairn::python {

struct ActivationLike {
  nb::handle object;
  //   Errors  TypeError: neither a name nor a function. InvalidArgument: no such name.
  nn::Activation in(Kept& kept) const;
};
struct InitializerLike {
  nb::handle object;
  nn::KernelInitializer kernel(Kept& kept) const;
  // For a variable whose numbers of inputs and of outputs are known already.
  Initializer value(std::int64_t fan_in, std::int64_t fan_out, std::uint64_t seed = 0) const;
  std::optional<Initializer> maybe(std::int64_t fan_in, std::int64_t fan_out,
                                   std::uint64_t seed = 0) const;
};
struct RegularizerLike {
  nb::handle object;
  nn::Regularizer in(Kept& kept) const;
};
struct LayerLike {
  nb::handle object;
};
// Ids of examples: an array, or bags as nn.Ids.
struct IdsLike {
  nb::handle object;
  operator nn::Ids() const;
};
std::vector<nn::Ids> ids_list(nb::handle list);

// cairn.nn.Regularizer.
struct RegularizerObject {
  nn::Regularizer function;
};

// A number for both axes of an image, or one for each.
using Sizes = std::variant<std::int64_t, std::array<std::int64_t, 2>>;
std::array<std::int64_t, 2> sizes_of(const Sizes& sizes);

void bind_layer_options(nb::module_& m);

}  // namespace cairn::python

namespace nanobind::detail {
#define CAIRN_LAZY_CASTER(Type, name)                                            \
  template <>                                                                    \
  struct type_caster<cairn::python::Type> {                                      \
    NB_TYPE_CASTER(cairn::python::Type, const_name(name))                        \
    bool from_python(handle source, uint8_t, cleanup_list*) noexcept {           \
      value.object = source;                                                     \
      return true;                                                               \
    }                                                                            \
    static handle from_cpp(cairn::python::Type made, rv_policy, cleanup_list*) { \
      return made.object.inc_ref();                                              \
    }                                                                            \
  };
CAIRN_LAZY_CASTER(ActivationLike, "cairn.typing.ActivationLike")
CAIRN_LAZY_CASTER(InitializerLike, "cairn.typing.InitializerLike")
CAIRN_LAZY_CASTER(RegularizerLike, "cairn.typing.RegularizerLike")
CAIRN_LAZY_CASTER(LayerLike, "cairn.typing.LayerLike")
CAIRN_LAZY_CASTER(IdsLike, "cairn.typing.IdsLike")
#undef CAIRN_LAZY_CASTER
}  // namespace nanobind::detail
