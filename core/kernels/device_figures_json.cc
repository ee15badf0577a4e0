#include "core/kernels/device_figures_json.h"

namespace cairn {
namespace {

std::size_t bytes_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::size_t>() : 0;
}

}  // namespace

Json figures_json(std::string_view name, const DeviceFigures& figures) {
  return {{"device", name},
          {"model", figures.model},
          {"memory_bytes", figures.memory_bytes},
          {"used_bytes", figures.used_bytes()},
          {"variables_bytes", figures.variables_bytes},
          {"cache_bytes", figures.cache_bytes},
          {"cache_found", figures.cache_found ? Json(*figures.cache_found) : Json(nullptr)},
          {"values_bytes", figures.values_bytes},
          {"scratch_bytes", figures.scratch_bytes},
          {"registered_bytes", figures.registered_bytes},
          {"busy_percent", figures.busy_percent ? Json(*figures.busy_percent) : Json(nullptr)}};
}

DeviceFigures figures_of(const Json& json) {
  DeviceFigures figures;
  if (!json.is_object()) return figures;
  if (const auto model = json.find("model"); model != json.end() && model->is_string())
    figures.model = model->get<std::string>();
  figures.memory_bytes = bytes_in(json, "memory_bytes");
  figures.variables_bytes = bytes_in(json, "variables_bytes");
  figures.cache_bytes = bytes_in(json, "cache_bytes");
  if (const auto found = json.find("cache_found"); found != json.end() && found->is_number())
    figures.cache_found = found->get<double>();
  figures.values_bytes = bytes_in(json, "values_bytes");
  figures.scratch_bytes = bytes_in(json, "scratch_bytes");
  figures.registered_bytes = bytes_in(json, "registered_bytes");
  if (const auto busy = json.find("busy_percent"); busy != json.end() && busy->is_number_integer())
    figures.busy_percent = busy->get<int>();
  return figures;
}

}  // namespace cairn
