#include "data/file/memory_bytes.h"

#include "core/base/error.h"

namespace cairn {

std::size_t MemoryBytes::read(char* out, std::size_t most) {
  const std::size_t got = text_.copy(out, most, offset_);
  offset_ += got;
  return got;
}

void MemoryBytes::seek(std::uint64_t offset) {
  if (offset > text_.size())
    throw InvalidArgumentError(
        str("byte ", offset, " of a text in memory that has ", text_.size(), " bytes"));
  offset_ = offset;
}

}  // namespace cairn
