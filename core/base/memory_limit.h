// A bound on the memory of a process, as flags and job files have it.
#pragma once
#include <cstddef>
#include <string_view>

namespace cairn {

// "8 GB" (also KB, MB, TB, KiB, MiB, GiB, TiB), a share of the machine's memory as "0.5" or "50%",
// or "none", which is 0.
//   Errors  InvalidArgument: none of these.
std::size_t parse_memory_limit(std::string_view text);

}  // namespace cairn
