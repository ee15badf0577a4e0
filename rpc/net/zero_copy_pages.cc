#include "rpc/net/zero_copy_pages.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <boost/asio/error.hpp>
#include <cerrno>
#include <utility>

namespace cairn::rpc {
namespace {

using boost::system::error_code;

constexpr int kPipeBytes = 256 << 10;  // more at once is slower: the pages' records leave the cache

// splice(2) raises SIGPIPE where the other side is gone, and has no flag against it. The signal
// goes to the thread that called, where it stays pending while it is blocked and can be taken off.
// A signal that was pending before has another cause and stays.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    sigset_t pending;
    sigpending(&pending);
    pending_before_ = sigismember(&pending, SIGPIPE) == 1;
  }
  ~WithoutSigpipe() {
    constexpr timespec kNow{0, 0};
    if (raised_ && !pending_before_) sigtimedwait(&pipe_, nullptr, &kNow);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  void raised() { raised_ = true; }

 private:
  sigset_t pipe_, before_;
  bool pending_before_ = false, raised_ = false;
};

// Any other error means that this kernel or this kind of socket does not do it, and copies are sent
// instead; these three mean that the peer has gone.
bool is_refusal(int error) { return error != EPIPE && error != ECONNRESET && error != ENOTCONN; }

}  // namespace

ZeroCopyPages::~ZeroCopyPages() { refuse(); }

// Only when the first large piece comes: most sockets never need the pipe's two descriptors. Where
// the kernel cannot tell what is unread (SIOCOUTQ), lent pages would never be known to be free, so
// nothing is lent at all.
bool ZeroCopyPages::open() {
  if (into_ >= 0) return true;
  int ends[2], bytes = 0;
  if (::ioctl(socket_, SIOCOUTQ, &bytes) != 0) return false;
  if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return false;
  out_of_ = ends[0];
  into_ = ends[1];
  ::fcntl(into_, F_SETPIPE_SZ, kPipeBytes);  // a smaller grant is no error
  return true;
}

// Bytes in the pipe were not sent: the caller still has them.
void ZeroCopyPages::refuse() {
  works_ = false;
  in_pipe_ = 0;
  for (int* end : {&into_, &out_of_})
    if (*end >= 0) ::close(std::exchange(*end, -1));
}

// vmsplice puts references to the pages into the pipe, and splice moves them on into the socket.
// The pipe is emptied before more is put into it, so that what stands in it is always what is to be
// sent next, also for the call that goes on after the socket was full.
std::size_t ZeroCopyPages::send_some(const void* data, std::size_t size, error_code& error) {
  std::size_t sent = 0;
  if (!open()) {
    refuse();
    return 0;
  }
  WithoutSigpipe guard;
  while (sent < size) {
    if (in_pipe_ == 0) {
      const iovec piece{const_cast<char*>(static_cast<const char*>(data)) + sent, size - sent};
      const ssize_t lent = ::vmsplice(into_, &piece, 1, SPLICE_F_NONBLOCK);
      if (lent <= 0) {
        refuse();
        return sent;
      }
      in_pipe_ = static_cast<std::size_t>(lent);
    }
    const ssize_t moved = ::splice(out_of_, nullptr, socket_, nullptr, in_pipe_, SPLICE_F_NONBLOCK);
    if (moved > 0) {
      in_pipe_ -= static_cast<std::size_t>(moved);
      sent += static_cast<std::size_t>(moved);
      continue;
    }
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0 && errno == EPIPE) guard.raised();
    if (sent > 0) return sent;  // the next call meets the error again
    if (moved < 0 && errno == EAGAIN) {
      error = boost::asio::error::would_block;
    } else if (moved < 0 && !is_refusal(errno)) {
      error = error_code(errno, boost::system::system_category());
    } else {
      refuse();
    }
    return sent;
  }
  return sent;
}

// Pieces are lent in the order in which they are sent, so the list ascends and release_until()
// looks at its beginning only.
void ZeroCopyPages::keep(std::shared_ptr<void> owner, std::size_t bytes, std::uint64_t end) {
  kept_.push_back({std::move(owner), bytes, end});
  kept_bytes_ += bytes;
}

// At least the unread bytes, for the kernel counts what it keeps of them. Where it does not count,
// open() has lent nothing.
std::uint64_t ZeroCopyPages::unread() const {
  int bytes = 0;
  ::ioctl(socket_, SIOCOUTQ, &bytes);
  return static_cast<std::uint64_t>(bytes);
}

void ZeroCopyPages::release(std::uint64_t sent) {
  // All behind an unread byte is unread too: were one of these bytes unread, more than what was
  // sent after them would be.
  const std::uint64_t left = unread();
  if (left <= sent) release_until(sent - left);
}

void ZeroCopyPages::release_until(std::uint64_t position) {
  while (!kept_.empty() && kept_.front().end <= position) {
    kept_bytes_ -= kept_.front().bytes;
    kept_.pop_front();
  }
}

void ZeroCopyPages::release_all() {
  if (unread() == 0) release_until(UINT64_MAX);
}

}  // namespace cairn::rpc
