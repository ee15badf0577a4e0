// Brings a closure into the caches before it is needed: among thousands, each has left them by the
// time it is looked at again. What that gains with 1,000 workers is in bench/notebook.md.
#pragma once
#include <cstddef>

#include "coordinator/cluster/closure.h"

namespace cairn {

inline void fetch_ahead(const Closure& closure) {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < sizeof(Closure); at += kLine)
    __builtin_prefetch(reinterpret_cast<const char*>(&closure) + at, 1);
}

}  // namespace cairn
