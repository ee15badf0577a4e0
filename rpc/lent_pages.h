// Bytes that go into a Unix socket without a copy: it refers to the sender's pages until the other side has read them.
// By Linux's vmsplice(2) and splice(2), through a pipe: two descriptors for each socket that lends.
#pragma once
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

namespace cairn::rpc {

// Thread: that of the socket's reactor.
class LentPages {
 public:
  static constexpr std::size_t kBytesMin = 64 << 10;  // below, a copy costs less than the calls

  explicit LentPages(int socket) : socket_(socket) {}
  ~LentPages();
  LentPages(const LentPages&) = delete;
  LentPages& operator=(const LentPages&) = delete;

  // False once the system has refused: the bytes are then to be copied.
  bool usable() const { return usable_; }
  // Sends the first of `size` bytes at `data` and returns how many; after that the rest, and nothing else, is to be sent next.
  //   Errors  would_block; what the socket says; none with 0 bytes: no longer usable().
  std::size_t send_some(const void* data, std::size_t size, boost::system::error_code& error);

  // `owner` keeps the bytes that end at position `end` of the stream until the other side has read them.
  void keep(std::shared_ptr<void> owner, std::uint64_t end) { kept_.push_back({std::move(owner), end}); }
  bool empty() const { return kept_.empty(); }
  // Lets go of what has been read, where the stream has come to position `sent`.
  void release(std::uint64_t sent);
  // The same after the last byte: lets go of everything once nothing is unread.
  void release_all();

 private:
  struct Kept {
    std::shared_ptr<void> owner;
    std::uint64_t end;
  };
  bool open();
  void refuse();
  std::uint64_t unread() const;

  int socket_;
  int into_ = -1, out_of_ = -1;   // the pipe
  std::size_t in_pipe_ = 0;       // bytes that stand in it
  bool usable_ = true;
  std::deque<Kept> kept_;         // ascending
};

}  // namespace cairn::rpc
