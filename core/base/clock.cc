#include "core/base/clock.h"

#include <ctime>

#include "core/base/utc.h"

namespace cairn {
namespace {
class SystemClock final : public Clock {
 public:
  TimePoint now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }
  std::int64_t wall_microseconds() const override {
    auto since = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  }
};
}  // namespace

// Without state, so it does not matter in which order the objects of static lifetime that use it
// are destroyed.
const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

// Always UTC: the logs and manifests of one run are written on hosts in different time zones, and
// are compared. std::gmtime would share its result between threads.
std::string utc_text(std::int64_t microseconds) {
  const std::time_t seconds = microseconds / 1'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts)};
}
}  // namespace cairn
