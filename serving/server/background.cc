#include "serving/server/background.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace cairn::serving {
namespace {

constexpr int kNice = 10;
constexpr std::uint64_t kSliceNs = 100'000;

// The kernel's struct sched_attr, which glibc declares from 2.41 on.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = kNice;
  std::uint32_t priority = 0;
  std::uint64_t runtime = kSliceNs, deadline = 0, period = 0;
};

}  // namespace

void run_in_background() {
  const SchedulingAttributes wanted;
  if (::syscall(SYS_sched_setattr, 0, &wanted, 0) != 0)
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
}

}  // namespace cairn::serving
