// Wall time for people.
#pragma once
#include <cstdint>
#include <string>

namespace cairn {

// "2026-11-23 22:41:07 UTC", of microseconds since 1970. Thread: any.
std::string utc_text(std::int64_t microseconds);

}  // namespace cairn
