// MemoryBytes: text in memory, read as a file is.
#pragma once
#include <string_view>

#include "data/file/byte_source.h"

namespace cairn {

class MemoryBytes final : public ByteSource {
 public:
  // Reads what `text` refers to at the time, so that another text may take its place between two
  // passes. Both must outlive the source.
  explicit MemoryBytes(const std::string_view& text) : text_(text) {}

  std::size_t read(char* out, std::size_t most) override;
  void seek(std::uint64_t offset) override;

 private:
  const std::string_view& text_;
  std::size_t offset_ = 0;
};

}  // namespace cairn
