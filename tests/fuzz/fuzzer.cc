// The libFuzzer program of one target, CAIRN_FUZZ_TARGET.
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cairn::fuzz::CAIRN_FUZZ_TARGET({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
