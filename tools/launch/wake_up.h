// WakeUp: ends a sleep in poll() from another thread.
#pragma once
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/error.h"

namespace cairn::tools {

// An eventfd stays readable until it is taken, so a call between two sleeps is not lost.
//   Thread  any.
class WakeUp {
 public:
  //   Errors  ResourceExhausted: no descriptor is left.
  WakeUp() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ < 0) throw ResourceExhaustedError("this process may open no more files");
  }
  ~WakeUp() { ::close(descriptor_); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  int descriptor() const { return descriptor_; }
  void notify() const { ::eventfd_write(descriptor_, 1); }
  // Whether it was notified since it was last asked.
  bool take() const {
    eventfd_t times = 0;
    return ::eventfd_read(descriptor_, &times) == 0;
  }

 private:
  const int descriptor_;
};

}  // namespace cairn::tools
