// Initial values by name, as the reference has them: a rule takes a unit's numbers of inputs and
// outputs, and gives core's Initializer.
//   Sources  glorot: Glorot, Bengio, AISTATS 2010. he: He et al., ICCV 2015. lecun: LeCun et al.,
//            "Efficient BackProp", 1998. orthogonal: Saxe et al., arXiv:1312.6120.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/graph/variable.h"

namespace cairn::nn {

// From a kernel's number of inputs and of outputs per unit, and a seed.
using InitializerRule =
    std::function<Initializer(std::int64_t fan_in, std::int64_t fan_out, std::uint64_t seed)>;

// The rule of that name: glorot_normal, glorot_uniform, he_normal, he_uniform, lecun_normal,
// lecun_uniform, ones, random_normal (deviation 0.05), random_uniform (in ±0.05), truncated_normal
// (deviation 0.05), zeros. The normal ones that know the fans draw again beyond two deviations, and
// are as wide as makes up for it, as the reference does.
//   Errors  InvalidArgument: there is no such rule; names the nearest one.
InitializerRule initializer(const std::string& name);
// The same value everywhere.
InitializerRule constant(float value);

// A matrix of orthonormal rows or, if it has more rows than columns, columns: a given value, so it
// depends on `seed` alone and travels with the variable's specification.
//   Errors  InvalidArgument: rows or columns below 1.
//   Cost    rows · columns · min(rows, columns) multiplications.
Initializer orthogonal(std::int64_t rows, std::int64_t columns, std::uint64_t seed = 0);

// A layer's option: nothing (the layer's own default), core's Initializer, a rule, or a name.
class KernelInitializer {
 public:
  KernelInitializer() = default;
  KernelInitializer(Initializer fixed) {  // NOLINT(google-explicit-constructor)
    rule_ = [fixed = std::move(fixed)](std::int64_t, std::int64_t, std::uint64_t) { return fixed; };
  }
  KernelInitializer(InitializerRule rule)  // NOLINT(google-explicit-constructor)
      : rule_(std::move(rule)) {}
  KernelInitializer(const char* name)  // NOLINT(google-explicit-constructor)
      : rule_(initializer(name)) {}
  KernelInitializer(const std::string& name)  // NOLINT(google-explicit-constructor)
      : rule_(initializer(name)) {}

  explicit operator bool() const { return static_cast<bool>(rule_); }
  // Applies the rule that was chosen; if none was, Glorot uniform.
  Initializer resolve(std::int64_t fan_in, std::int64_t fan_out, std::uint64_t seed) const;

 private:
  InitializerRule rule_;
};

}  // namespace cairn::nn
