// TypedSignals: SIGINT, SIGTERM and SIGHUP as something to poll.
#pragma once
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <optional>

namespace cairn::tools {

// Make it before any thread starts: threads inherit the signal mask, and a thread in which one of
// these signals is not blocked would take it, which ends the process. They stay blocked.
//   Thread  one.
class TypedSignals {
 public:
  TypedSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~TypedSignals() { ::close(fd_); }
  TypedSignals(const TypedSignals&) = delete;
  TypedSignals& operator=(const TypedSignals&) = delete;

  int fd() const { return fd_; }
  // The next one that came; empty: none.
  std::optional<signalfd_siginfo> next() const {
    signalfd_siginfo info;
    if (::read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
    return info;
  }

 private:
  int fd_;
};

}  // namespace cairn::tools
