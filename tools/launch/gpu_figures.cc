#include "tools/launch/gpu_figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/error.h"
#include "core/kernels/cuda/library.h"
#include "core/kernels/device_figures_json.h"

namespace cairn::tools {
namespace {

double gib(std::size_t bytes) { return static_cast<double>(bytes) / 0x1p30; }

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string text_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

// A worker that is away has no details, and one of an older release no devices.
std::vector<GpuSeen> gpus_in(const Json& status) {
  std::vector<GpuSeen> gpus;
  if (!status.is_object()) return gpus;
  for (const Json& task : status.value("workers", Json::array())) {
    if (!task.is_object()) continue;
    const Json own = task.value("details", Json::object());
    if (!own.is_object()) continue;
    for (const Json& one : own.value("devices", Json::array()))
      if (one.is_object())
        gpus.push_back({text_in(task, "task"), text_in(one, "device"), figures_of(one)});
  }
  return gpus;
}

std::vector<GpuSeen> gpus_here(const std::vector<std::string>& names) {
  std::vector<GpuSeen> gpus;
  if (std::none_of(names.begin(), names.end(),
                   [](const std::string& name) { return name.starts_with("gpu:"); }))
    return gpus;
  for (const cuda::OpenedDevice& one : cairn::gpus().devices) {
    const std::string name(one.device->name());
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    if (const auto figures = one.device->figures()) gpus.push_back({"", name, *figures});
  }
  return gpus;
}

std::string gpu_text(const GpuSeen& gpu) {
  const DeviceFigures& f = gpu.figures;
  return str(
      gpu.name, f.model.empty() ? "" : " ", f.model, ": ",
      formatted("%.1f of %.1f GiB used (variables %.1f, ", gib(f.used_bytes()), gib(f.memory_bytes),
                gib(f.variables_bytes)),
      f.cache_bytes > 0 ? formatted("caches of tables %.1f, ", gib(f.cache_bytes)) : "",
      formatted("values of steps %.1f, scratch %.1f)", gib(f.values_bytes), gib(f.scratch_bytes)),
      f.cache_found ? formatted(", %.0f %% of the rows found in caches", 100 * *f.cache_found) : "",
      f.busy_percent ? str(", ", *f.busy_percent, " % busy") : "");
}

std::string gpus_text(const std::vector<GpuSeen>& gpus) {
  if (gpus.empty()) return "";
  double used = 0, memory = 0, busy = 0;
  int told = 0;
  for (const GpuSeen& gpu : gpus) {
    used += gib(gpu.figures.used_bytes());
    memory += gib(gpu.figures.memory_bytes);
    if (gpu.figures.busy_percent) busy += *gpu.figures.busy_percent, ++told;
  }
  return str(gpus.size() == 1 ? "gpu" : str(gpus.size(), " gpus"),
             told > 0 ? formatted(" %.0f %%,", busy / told) : "",
             formatted(" %.1f/%.1f GiB", used, memory));
}

void GpusOfRun::add(const std::vector<GpuSeen>& gpus) {
  for (const GpuSeen& gpu : gpus) {
    Sum& sum = seen_[{gpu.task, gpu.name}];
    if (sum.most.name.empty() || gpu.figures.used_bytes() >= sum.most.figures.used_bytes())
      sum.most = gpu;
    if (!gpu.figures.busy_percent) continue;
    sum.busy += *gpu.figures.busy_percent;
    ++sum.times;
  }
}

Json GpusOfRun::json() const {
  if (seen_.empty()) return nullptr;
  Json all = Json::array();
  for (const auto& [key, sum] : seen_) {
    GpuSeen most = sum.most;
    most.figures.busy_percent.reset();
    if (sum.times > 0)
      most.figures.busy_percent = static_cast<int>(std::lround(sum.busy / sum.times));
    Json one{{"task", key.first.empty() ? Json(nullptr) : Json(key.first)}};
    one.update(figures_json(most.name, most.figures));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace cairn::tools
