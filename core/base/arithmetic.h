// The arithmetic in which matrix products are computed, and on GPUs convolutions, which are made of
// products there.
#pragma once
#include <cstdint>
#include <string_view>

namespace cairn {

// Whatever is not said here to be rounded stays float32: variables and their updates always.
enum class Arithmetic : std::uint8_t {
  kFloat32,
  // Operands are rounded to the 10 bits behind the point that tensor cores multiply, and products
  // summed in float32. Devices without such cores compute in float32.
  kTf32,
  // Operands are rounded to bfloat16 and products summed in float32. Meant for processors that
  // compute it (AVX-512 BF16, AMX, tensor cores); others give the same numbers, to within the order
  // of summing, and gain nothing.
  kBfloat16,
  // As kBfloat16. In addition, a device that can read bfloat16 from its memory keeps values in it
  // that pass from one product to another: those between the layers of a network, and their
  // gradients. They take half the memory. A value that another kind of operation needs in float32
  // stays float32. Other devices compute as under kBfloat16.
  kMixedBfloat16,
};

// The name in job files and flags: "float32", "tf32", "bfloat16" or "mixed_bfloat16".
const char* arithmetic_name(Arithmetic arithmetic);
//   Errors  InvalidArgument: another name; lists them.
Arithmetic parse_arithmetic(std::string_view name);

// Whether the operands of products are rounded to bfloat16.
constexpr bool rounds_to_bfloat16(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kBfloat16 || arithmetic == Arithmetic::kMixedBfloat16;
}

}  // namespace cairn
