// Interrupts: how a run is asked to stop. SIGINT, SIGTERM and SIGHUP (a terminal that was closed)
// end it in order, with a checkpoint.
#pragma once
#include <signal.h>

#include <atomic>

namespace cairn::tools {

// While it lives, the first of the three signals is noted, and the process has kSecondsMax, or what
// allow_for() says, to end in order: after that it ends as it is, with the status 128 + signal. The
// next SIGINT or SIGTERM ends the process at once, and with it its children, which die with their
// parent. A SIGHUP that is ignored, as under nohup, stays ignored. Writing to a closed pipe
// (`| head`) is an error of that write and no longer ends the process.
//   Only one object exists at a time. A signal within 300 ms of the first is taken for its echo: a
//   terminal that closes sends SIGHUP twice, and `timeout` sends its signal to the process and to
//   its group.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // puts back what was there
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // The number of the first signal; 0: none came.
  static const std::atomic<int>& signal();
  static constexpr unsigned kSecondsMax = 30;
  // A save took so many seconds: the next one, which a signal begins, may take twice as long if
  // that is more. Returns the limit, in seconds; 0 if no object exists, and so no limit.
  static unsigned allow_for(double seconds);

 private:
  struct sigaction before_[4];
  struct sigaction alarm_before_;
};

}  // namespace cairn::tools
