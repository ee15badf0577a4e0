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

std::string save_text(const Json& own) {
  double blocks = 0, saved_blocks = 0, bytes = 0, copied = 0, copied_max = 0, waiting = 0;
  for (const auto& shard : own.is_object() ? own.value("shards", Json::array()) : Json::array()) {
    blocks += shard.value("save_blocks", 0.0);
    saved_blocks += shard.value("saved_blocks", 0.0);
    bytes += shard.value("saved_bytes", 0.0);
    copied += shard.value("copied_bytes", 0.0);
    copied_max += shard.value("copied_bytes_max", 0.0);
    waiting += shard.value("waiting", 0.0);
  }
  if (blocks == 0) return "";
  const auto megabytes = [](double of) { return std::llround(of / (1 << 20)); };
  std::string text = str(" saving: ", std::llround(100 * saved_blocks / blocks), " %, ",
                         megabytes(bytes), " MB written, ", megabytes(copied), " MB of at most ",
                         megabytes(copied_max), " MB copied aside");
  if (waiting > 0) text += str(", ", std::llround(waiting), " pushes wait");
  return text;
}

std::string restore_text(const Json& own) {
  double bytes = 0, all = 0;
  for (const auto& shard : own.is_object() ? own.value("shards", Json::array()) : Json::array()) {
    bytes += shard.value("restored_bytes", 0.0);
    all += shard.value("restoring_bytes", 0.0);
  }
  if (all == 0) return "";
  const auto megabytes = [](double of) { return std::llround(of / (1 << 20)); };
  return str(" restoring on demand: ", megabytes(bytes), " of ", megabytes(all), " MB are there");
}

}  // namespace cairn::tools
