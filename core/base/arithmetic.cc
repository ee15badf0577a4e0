#include "core/base/arithmetic.h"

#include <array>

#include "core/base/error.h"

namespace cairn {
namespace {

constexpr std::array<const char*, 4> kNames = {"float32", "tf32", "bfloat16", "mixed_bfloat16"};

}  // namespace

const char* arithmetic_name(Arithmetic arithmetic) {
  return kNames[static_cast<std::size_t>(arithmetic)];
}

Arithmetic parse_arithmetic(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<Arithmetic>(i);
  throw InvalidArgumentError(
      str("unknown arithmetic \"", name, "\": float32, tf32, bfloat16 or mixed_bfloat16"));
}

}  // namespace cairn
