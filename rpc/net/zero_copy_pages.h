// Bytes that go into a Unix socket without a copy: it refers to the sender's pages until the peer
// has read them. By Linux's vmsplice(2) and splice(2), through a pipe: two descriptors per socket
// that lends.
#pragma once
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

namespace cairn::rpc {

// Thread: that of the socket's reactor.
class ZeroCopyPages {
 public:
  static constexpr std::size_t kBytesMin = 64 << 10;  // below, a copy costs less than the calls
  static constexpr std::size_t kKeptMax = 64 << 20;   // for a peer that reads, and never answers

  explicit ZeroCopyPages(int socket) : socket_(socket) {}
  ~ZeroCopyPages();
  ZeroCopyPages(const ZeroCopyPages&) = delete;
  ZeroCopyPages& operator=(const ZeroCopyPages&) = delete;

  // False once the system has refused: the bytes are then to be copied.
  bool works() const { return works_; }
  // Whether to begin with another piece: not while too much is kept.
  bool usable() const { return works_ && kept_bytes_ < kKeptMax; }
  // Sends the first of `size` bytes at `data` and returns how many; after that the rest, and
  // nothing else, is to be sent next.
  //   Errors  would_block; what the socket says; none with 0 bytes: it no longer works().
  std::size_t send_some(const void* data, std::size_t size, boost::system::error_code& error);

  // `owner` keeps `bytes` bytes that end at position `end` of the stream until the other side has
  // read them.
  void keep(std::shared_ptr<void> owner, std::size_t bytes, std::uint64_t end);
  bool empty() const { return kept_.empty(); }
  // Lets go of what has been read, by the kernel's count of unread bytes, where the stream has come
  // to position `sent`.
  void release(std::uint64_t sent);
  // The same after the last byte: lets go of everything once nothing is unread.
  void release_all();

 private:
  struct Kept {
    std::shared_ptr<void> owner;
    std::size_t bytes;
    std::uint64_t end;
  };
  bool open();
  void refuse();
  std::uint64_t unread() const;
  void release_until(std::uint64_t position);

  int socket_;
  int into_ = -1, out_of_ = -1;  // the pipe
  std::size_t in_pipe_ = 0;      // bytes that stand in it
  bool works_ = true;
  std::deque<Kept> kept_;  // ascending
  std::size_t kept_bytes_ = 0;
};

}  // namespace cairn::rpc
