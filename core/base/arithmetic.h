// The arithmetic in which matrix products are computed.
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
  // As kBfloat16; and a device that takes bfloat16 from memory keeps what products read in it: the
  // values between the layers of a network and their gradients, which then take half the memory.
  // Only what no other kind of operation reads. Other devices compute as under kBfloat16.
  kMixedBfloat16,
};

// "float32", "tf32", "bfloat16", "mixed_bfloat16": as job files and flags have them.
const char* arithmetic_name(Arithmetic arithmetic);
//   Errors  InvalidArgument: another name; lists them.
Arithmetic parse_arithmetic(std::string_view name);

// Whether the operands of products are rounded to bfloat16.
constexpr bool rounds_to_bfloat16(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kBfloat16 || arithmetic == Arithmetic::kMixedBfloat16;
}

}  // namespace cairn
