// effort(n): how many tries a test of many is worth. Under a sanitizer, which makes each ten times
// as long, a fifth of them.
#pragma once
#include <cstdint>

namespace cairn {

constexpr std::uint64_t effort(std::uint64_t tries) {
#if defined(CAIRN_SANITIZED)
  return (tries + 4) / 5;
#else
  return tries;
#endif
}

}  // namespace cairn
