// Whether data may come from what can be read only once: a pipe, a terminal or a socket.
#pragma once
#include <cstdint>

namespace cairn {

enum class Pipes : std::uint8_t {
  kRefuse,
  // It is read as it comes, from its beginning to its end; a second pass is an error. The path
  // kStandardInput then is this process's standard input, whatever that is.
  kReadOnce,
};

inline constexpr const char* kStandardInput = "/dev/stdin";

}  // namespace cairn
