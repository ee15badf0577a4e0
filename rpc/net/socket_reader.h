// SocketReader: the reading half of an AsioStream: one system call takes what the caller wants and,
// in the same call, what lies behind it; what is there is had without waiting; and a sender who
// never stops leaves the loop to others in between. For this room's .cc files.
#pragma once
#include <array>
#include <boost/asio/buffer.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "rpc/net/socket_core.h"

namespace cairn::rpc {

class SocketReader {
 public:
  // `receives_descriptors`: memory may come along, of which the last is kept for take_shared().
  SocketReader(std::shared_ptr<SocketCore> core, const StreamOptions& options,
               bool receives_descriptors);
  ~SocketReader();

  // As ByteStream::tryRead() and read_now().
  kj::Promise<size_t> read(void* buffer, size_t min, size_t max);
  std::size_t read_now(void* buffer, std::size_t bytes);
  // Nothing more is read: reads end with what they have.
  void abort() { aborted_ = true; }

  std::shared_ptr<SharedMemory> take_shared() { return std::exchange(shared_, nullptr); }
  std::uint64_t bytes_in() const { return bytes_in_; }
  bool holds_bytes() const { return ahead_begin_ != ahead_end_; }  // read, and not asked for yet

 private:
  struct Read {
    char* to;
    size_t min, max, got;
    bool complete() const { return got >= min && got > 0; }
    size_t room() const { return max - got; }
  };
  class Rest;

  Read begin(void* buffer, size_t min, size_t max);
  std::array<asio::mutable_buffer, 2> buffers(const Read& read);
  size_t receive(const Read& read, boost::system::error_code& error);
  void landed(Read& read, size_t bytes);
  kj::Promise<size_t> read_some(Read read);

  std::shared_ptr<SocketCore> core_;
  const std::size_t turn_max_, shared_bytes_max_;
  const bool receives_descriptors_;
  std::shared_ptr<SharedMemory> shared_;  // received
  std::uint64_t bytes_in_ = 0;
  std::vector<char> ahead_;
  size_t ahead_begin_ = 0, ahead_end_ = 0;
  bool dry_ = false;  // the last read emptied the socket, or it is the loop's turn
  size_t turn_ = 0;   // bytes read since it last was
  bool aborted_ = false;
  boost::system::error_code error_;  // seen by read_now(), for the next read
};

}  // namespace cairn::rpc
