#include "bench/trace.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"

namespace cairn::bench {
namespace {

constexpr double kBack = 1e6, kShown = 250e3;  // microseconds: from so long before the end, so much

}  // namespace

void join_traces(const std::string& folder, const std::string& file) {
  Json all = Json::array();
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    for (auto& event : parse_json(system_disk().read(entry.path().string()), entry.path().string()))
      all.push_back(std::move(event));
  double end = 0;
  for (const auto& event : all) end = std::max(end, event.value("ts", 0.0));
  if (end == 0) throw NotFoundError("no process recorded a span: name a benchmark that trains");
  Json shown = Json::array();
  for (auto& event : all) {
    const double at = event.value("ts", 0.0);
    if (event["ph"] == "M" || (at >= end - kBack && at < end - kBack + kShown))
      shown.push_back(std::move(event));
  }
  system_disk().write_atomically(file, json_text(shown));
}

}  // namespace cairn::bench
