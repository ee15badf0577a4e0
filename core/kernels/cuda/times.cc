#include "core/kernels/cuda/times.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cairn::cuda {

bool OperationTimes::wanted() {
  const char* const told = std::getenv("CAIRN_GPU_TIMES");
  return told != nullptr && std::strcmp(told, "1") == 0;
}

void OperationTimes::time(const std::string& what, Stream stream,
                          const std::function<void()>& enqueue) {
  if (free_.empty()) free_.emplace_back(driver_.make_event(), driver_.make_event());
  const auto events = free_.back();
  free_.pop_back();
  driver_.record(events.first, stream);
  enqueue();
  driver_.record(events.second, stream);
  pending_.emplace_back(what, events);
}

void OperationTimes::collect() {
  for (const auto& [what, events] : pending_) {
    Total& total = totals_[what];
    total.ms += driver_.elapsed_ms(events.first, events.second);
    ++total.runs;
    free_.push_back(events);
  }
  pending_.clear();
}

OperationTimes::~OperationTimes() {
  for (const auto& [what, events] : pending_) free_.push_back(events);
  for (const auto& [first, second] : free_) {
    driver_.destroy(first);
    driver_.destroy(second);
  }
  std::vector<std::pair<std::string, Total>> all(totals_.begin(), totals_.end());
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
  if (!all.empty())
    std::fprintf(stderr, "%12s %8s %10s  operation\n", "ms in all", "runs", "us a run");
  for (const auto& [what, total] : all)
    std::fprintf(stderr, "%12.3f %8lld %10.1f  %s\n", total.ms, static_cast<long long>(total.runs),
                 total.ms * 1000 / static_cast<double>(total.runs), what.c_str());
}

}  // namespace cairn::cuda
