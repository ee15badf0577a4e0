#include "tools/job/run/interrupt.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace cairn::tools {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
constexpr std::int64_t kEchoMs = 300;

// Static, because a handler has no argument to find an object by; lock-free, because a handler may
// interrupt the very code that holds a lock.
std::atomic<int> first{0};
std::atomic<std::int64_t> first_at{0};
std::atomic<unsigned> seconds_max{Interrupts::kSecondsMax};
std::atomic<bool> installed{false};
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<unsigned>::is_always_lock_free);

// clock_gettime() may be called within a handler; std::chrono does not say so of its clocks.
std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// Calls only what POSIX lets a handler call (signal-safety(7)). The first signal is noted, and a
// loop elsewhere looks for it; a later one restores the default action and raises itself again, so
// that the process ends as a shell expects of that signal.
void on_signal(int number) {
  int none = 0;
  if (first.compare_exchange_strong(none, number)) {
    first_at = now_ms();
    ::alarm(seconds_max);
    return;
  }
  if (number == SIGHUP || now_ms() - first_at < kEchoMs) return;
  ::signal(number, SIG_DFL);
  ::raise(number);  // blocked while we handle it: it ends the process when we return
}

// The save that the first signal began waits for something that does not come, such as a ps. The
// status is that of a run that ended in time.
void on_alarm(int) {
  constexpr std::string_view kText =
      "\ncairn: the run could not be saved and ended in the time that the first signal gave it, "
      "and ends as it is: what was trained since its newest checkpoint is gone\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(128 + first);
}

}  // namespace

// SA_RESTART: system calls of other code go on after the handler instead of failing with EINTR.
Interrupts::Interrupts() {
  installed = true;
  first = 0;
  seconds_max = kSecondsMax;
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 4; ++i) {
    action.sa_handler = kSignals[i] == SIGPIPE ? SIG_IGN : on_signal;
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) continue;
    ::sigaction(kSignals[i], &action, nullptr);
  }
  action.sa_handler = on_alarm;
  ::sigaction(SIGALRM, &action, &alarm_before_);
}

Interrupts::~Interrupts() {
  installed = false;
  ::alarm(0);
  ::sigaction(SIGALRM, &alarm_before_, nullptr);
  for (int i = 0; i < 4; ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

const std::atomic<int>& Interrupts::signal() { return first; }

unsigned Interrupts::allow_for(double seconds) {
  seconds_max = std::max(kSecondsMax, static_cast<unsigned>(std::min(std::ceil(2 * seconds), 1e6)));
  return installed ? seconds_max.load() : 0;
}

}  // namespace cairn::tools
