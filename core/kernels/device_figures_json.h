// A device's figures as JSON: in the status of a worker, and in reports.
#pragma once
#include <string_view>

#include "core/base/json.h"
#include "core/kernels/device_figures.h"

namespace cairn {

// {"device": "gpu:0", "model": ..., "memory_bytes": ..., "used_bytes": ..., ...}; an unknown
// busy_percent is null.
Json figures_json(std::string_view name, const DeviceFigures& figures);
// The other way round. What is missing, or of another type, is 0 or empty: it may be a stranger's.
DeviceFigures figures_of(const Json& json);

}  // namespace cairn
