// ByteWindow: the bytes of a file that are looked at, for readers that cut it into lines or
// records. It grows only as bytes arrive, so that no size a file claims is believed.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/file/byte_source.h"

namespace cairn {

// Thread: one at a time.
class ByteWindow {
 public:
  explicit ByteWindow(std::unique_ptr<ByteSource> bytes);

  // The bytes that are read and not yet passed. Valid until more(), discard() or seek().
  std::string_view view() const { return {buffer_.data() + begin_, end_ - begin_}; }
  // Reads on behind view(); false: the file has no more.
  bool more();
  void pass(std::size_t bytes) { begin_ += bytes; }  // of view()
  // Passes so many bytes without keeping them. Returns how many there were: fewer at the end.
  std::uint64_t discard(std::uint64_t bytes);
  // Where view() begins, in the decompressed file.
  std::uint64_t offset() const { return base_ + begin_; }
  void seek(std::uint64_t offset);

 private:
  std::unique_ptr<ByteSource> bytes_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t base_ = 0;  // the file offset of buffer_[0]
  bool at_end_ = false;
};

}  // namespace cairn
