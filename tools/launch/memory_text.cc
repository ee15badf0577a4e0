#include "tools/launch/memory_text.h"

#include <cmath>

#include "core/base/error.h"

namespace cairn::tools {

// Fields are looked for one by one: each kind of task reports those that it has.
std::string memory_text(const Json& own) {
  if (!own.is_object() || !own.contains("memory_bytes")) return "";
  std::string parts;
  auto part = [&](const char* name, double bytes) {
    parts += str(parts.empty() ? " (" : ", ", name, " ", std::llround(bytes / (1 << 20)));
  };
  // Rows are what a ps is for; waiting pieces are pushes that have come in part.
  if (own.contains("shards")) {
    double rows = 0, staged = 0;
    for (const auto& shard : own["shards"]) {
      rows += shard.value("bytes", 0.0);
      staged += shard.value("staged_bytes", 0.0);
    }
    part("rows", rows);
    part("waiting pieces", staged);
  }
  if (own.contains("buffer_bytes")) part("buffers", own["buffer_bytes"].get<double>());
  if (own.contains("shared_bytes")) part("shared with ps", own["shared_bytes"].get<double>());
  return str(" memory ", std::llround(own["memory_bytes"].get<double>() / (1 << 20)), " MB", parts,
             parts.empty() ? "" : ")");
}

}  // namespace cairn::tools
