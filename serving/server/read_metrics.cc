#include "serving/server/read_metrics.h"

#include <atomic>
#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "serving/model/memory_budget.h"
#include "serving/model/read_counters.h"

namespace cairn::serving {

namespace {

void add_following(const std::string& model, const Follower::Position& position,
                   std::vector<Measured>& now) {
  now.push_back({"cairn_serve_followed_rows_total", model, static_cast<double>(position.rows)});
  now.push_back({"cairn_serve_ps_away", model, static_cast<double>(position.away.size())});
  if (position.covered == TimePoint::min()) return;
  const std::chrono::duration<double> age = system_clock().now() - position.covered;
  now.push_back({"cairn_serve_row_age_seconds", model, age.count()});
}

}  // namespace

void add_read_metrics(const ModelDirectory& models, std::vector<Measured>& now) {
  const MemoryBudget* const memory = models.memory();
  const auto bytes = [&](std::size_t (MemoryBudget::*of)() const) {
    return memory == nullptr ? 0.0 : static_cast<double>((memory->*of)());
  };
  now.push_back({"cairn_serve_memory_limit_bytes", "", bytes(&MemoryBudget::limit)});
  now.push_back({"cairn_serve_cache_bytes", "", bytes(&MemoryBudget::cache_bytes)});
  for (const std::string& name : models.names()) {
    const std::string model = str("model=\"", label_text(name), '"');
    const auto reads = models.reads(name);
    const auto count = [&](const char* family, const std::atomic<std::uint64_t>& of) {
      now.push_back({family, model, static_cast<double>(of.load(std::memory_order_relaxed))});
    };
    count("cairn_serve_unknown_ids_total", reads->unknown_ids);
    count("cairn_serve_cache_hits_total", reads->cache_hits);
    count("cairn_serve_cache_misses_total", reads->cache_misses);
    count("cairn_serve_stale_rows_total", reads->stale_rows);
    count("cairn_serve_damaged_blocks_total", reads->damaged_blocks);
    try {
      if (const auto newest = models.find(name); newest.follower != nullptr)
        add_following(model, newest.follower->position(), now);
    } catch (const UnavailableError&) {  // it has no version yet
    }
  }
}

}  // namespace cairn::serving
