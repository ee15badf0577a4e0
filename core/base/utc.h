// Wall time for people: logs, reports, the ages of checkpoints.
#pragma once
#include <cstdint>
#include <string>

namespace cairn {

// The time `microseconds` since 1970 as text: "2026-11-23 22:41:07 UTC".
//   Thread  any.
std::string utc_text(std::int64_t microseconds);

}  // namespace cairn
