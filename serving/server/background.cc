#include "serving/server/background.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace cairn::serving {
namespace {

constexpr int kNice = 15;

// The kernel's struct sched_attr, which glibc declares from 2.41 on.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = kNice;
  std::uint32_t priority = 0;
  // Since Linux 6.12 this is the length of the thread's slices, in nanoseconds. A thread that
  // yields gives up the rest of its slice: long slices would cost it most of its share.
  std::uint64_t runtime = std::chrono::nanoseconds(kGiveWayEvery).count();
  std::uint64_t deadline = 0, period = 0;
};

}  // namespace

void run_in_background() {
  const SchedulingAttributes wanted;
  if (::syscall(SYS_sched_setattr, 0, &wanted, 0) != 0)
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
}

void give_way() { ::sched_yield(); }

}  // namespace cairn::serving
