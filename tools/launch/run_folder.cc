// UTC, so that names sort by time across daylight saving; the process number keeps two runs of one
// second apart.
#include "tools/launch/run_folder.h"

#include <unistd.h>

#include <ctime>
#include <filesystem>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace cairn::tools {

std::string time_stamp(const char* format) {
  std::time_t seconds = system_clock().wall_microseconds() / 1'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

std::string new_run_folder() { return str("runs/", time_stamp("%Y%m%d-%H%M%S"), "-", ::getpid()); }

// Folders are asked from no particular order, and `wanted` may read files, so it is asked only
// about those that would be newer.
std::string newest_run(const std::function<bool(const std::string& folder)>& wanted) {
  std::string newest;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("runs", none)) {
    const std::string folder = entry.path().string();
    if (folder > newest && wanted(folder)) newest = folder;
  }
  return newest;
}

}  // namespace cairn::tools
