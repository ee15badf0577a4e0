#include "core/memory/bulk_copy.h"

#include <cstdint>
#include <cstring>

#include "core/memory/stream_lines.h"
#include "core/memory/stripes.h"

namespace cairn {
namespace {

// Four stretches side by side (stripes.h), of which each is a stream to the hardware. The lines
// that the stripes leave over come last.
void stream_striped(std::byte* to, const std::byte* from, std::size_t lines) {
  constexpr std::size_t kStripes = 4;
  const std::size_t stripe = stripe_length(lines, kStreamedLine, kStripes);
  for (std::size_t line = 0; line < stripe; ++line)
    for (std::size_t s = 0; s < kStripes; ++s) {
      const std::size_t at = (s * stripe + line) * kStreamedLine;
      stream_lines(to + at, from + at, 1);
    }
  const std::size_t done = kStripes * stripe;
  stream_lines(to + done * kStreamedLine, from + done * kStreamedLine, lines - done);
  end_of_stream();
}

}  // namespace

void copy_bulk(void* to, const void* from, std::size_t bytes) {
  if (bytes < kBulkBytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const std::size_t head =
      (kStreamedLine - reinterpret_cast<std::uintptr_t>(out) % kStreamedLine) % kStreamedLine;
  const std::size_t lines = (bytes - head) / kStreamedLine, middle = lines * kStreamedLine;
  std::memcpy(out, in, head);
  stream_striped(out + head, in + head, lines);
  std::memcpy(out + head + middle, in + head + middle, bytes - head - middle);
}

}  // namespace cairn
