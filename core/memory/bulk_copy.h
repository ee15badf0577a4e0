// memcpy for bulk that this core does not read again at once.
#pragma once
#include <cstddef>

namespace cairn {

// A piece of this size leaves the near caches before it is read, or read again.
inline constexpr std::size_t kBulkBytes = std::size_t{2} << 20;

// From kBulkBytes on past the caches (stream_lines.h), which saves a third of memory's traffic.
// Below that it is memcpy.
// Thread  any.
void copy_bulk(void* to, const void* from, std::size_t bytes);

}  // namespace cairn
