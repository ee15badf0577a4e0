#include "serving/server/background.h"

#include <sys/resource.h>
#include <unistd.h>

namespace cairn::serving {

void run_in_background() {
  constexpr int kNice = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
}

}  // namespace cairn::serving
