// memcpy for bulk that another core reads next.
#pragma once
#include <cstddef>

namespace cairn {

// From 2 MiB on past the caches: lines that are about to be overwritten are not read first, which is a third of memory's traffic, and
// what the caches hold stays. Below that it is memcpy.   Thread  any.
void copy_bulk(void* to, const void* from, std::size_t bytes);

}  // namespace cairn
