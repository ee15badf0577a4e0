#include "core/kernels/cpu/bulk_copy.h"

#include <cstdint>
#include <cstring>

#include "core/kernels/cpu/stream_lines.h"

namespace cairn {

void copy_bulk(void* to, const void* from, std::size_t bytes) {
  if (bytes < kBulkBytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const std::size_t head = (kStreamedLine - reinterpret_cast<std::uintptr_t>(out) % kStreamedLine) % kStreamedLine;
  const std::size_t lines = (bytes - head) / kStreamedLine, middle = lines * kStreamedLine;
  std::memcpy(out, in, head);
  stream_lines(out + head, in + head, lines);
  end_of_stream();
  std::memcpy(out + head + middle, in + head + middle, bytes - head - middle);
}

}  // namespace cairn
