#include "data/file/byte_window.h"

#include <algorithm>
#include <cstring>

namespace cairn {
namespace {

// Stays in the second-level cache while what was read is decoded.
constexpr std::size_t kBufferBytes = 256u << 10;

}  // namespace

ByteWindow::ByteWindow(std::unique_ptr<ByteSource> bytes)
    : bytes_(std::move(bytes)), buffer_(kBufferBytes) {}

// Unpassed bytes move to the front only when there is no room behind them, and the buffer doubles
// only when it is full: a long record costs a few copies, and memory only for bytes that are there.
bool ByteWindow::more() {
  if (at_end_) return false;
  if (end_ == buffer_.size() && begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    base_ += begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const std::size_t got = bytes_->read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  at_end_ = got == 0;
  return got > 0;
}

std::uint64_t ByteWindow::discard(std::uint64_t bytes) {
  std::uint64_t gone = 0;
  while (gone < bytes) {
    if (begin_ == end_ && !more()) break;
    const std::size_t here = std::min<std::uint64_t>(bytes - gone, end_ - begin_);
    begin_ += here;
    gone += here;
  }
  return gone;
}

void ByteWindow::seek(std::uint64_t offset) {
  bytes_->seek(offset);
  base_ = offset;
  begin_ = end_ = 0;
  at_end_ = false;
}

}  // namespace cairn
