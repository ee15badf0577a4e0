#include "core/kernels/cuda/runtime/times.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"

namespace cairn::cuda {
namespace {

// So many are read at the latest; a step that never gives the host a value would keep them all.
constexpr std::size_t kPendingMax = 4096;
// CUDA gives differences as a float: ten seconds apart, that is a microsecond exactly.
constexpr double kAnchorMsMax = 10'000;

}  // namespace

bool OperationTimes::are_printed() {
  const char* const told = std::getenv("CAIRN_GPU_TIMES");
  return told != nullptr && std::strcmp(told, "1") == 0;
}

OperationTimes::OperationTimes(Driver& driver, bool printed, SpanSink* trace, std::string track)
    : driver_(driver), printed_(printed), trace_(trace), track_(std::move(track)) {
  if (trace_ != nullptr) anchor_ = driver_.make_event();
}

void OperationTimes::time(const std::string& what, Stream stream,
                          const std::function<void()>& enqueue) {
  stream_ = stream;
  if (pending_.size() >= kPendingMax) {
    driver_.wait(stream);
    collect();
  }
  if (trace_ != nullptr && !anchored_) set_anchor(stream);
  if (free_.empty()) free_.emplace_back(driver_.make_event(), driver_.make_event());
  const auto events = free_.back();
  free_.pop_back();
  driver_.record(events.first, stream);
  enqueue();
  driver_.record(events.second, stream);
  pending_.emplace_back(what, events);
}

// Nothing lies between the event and the wait, so that the host sees it as soon as it is reached.
void OperationTimes::set_anchor(Stream stream) {
  driver_.wait(stream);
  collect();
  driver_.record(anchor_, stream);
  driver_.wait(stream);
  anchored_at_ = std::chrono::steady_clock::now();
  anchored_ = true;
}

void OperationTimes::collect() {
  for (const auto& [what, events] : pending_) {
    const double ms = driver_.elapsed_ms(events.first, events.second);
    if (trace_ != nullptr) record(what, events, ms);
    if (printed_) {
      Total& total = totals_[what];
      total.ms += ms;
      ++total.runs;
    }
    free_.push_back(events);
  }
  pending_.clear();
}

void OperationTimes::record(const std::string& what, std::pair<Event, Event> events,
                            double took_ms) {
  const double after_ms = driver_.elapsed_ms(anchor_, events.first);
  if (after_ms > kAnchorMsMax) anchored_ = false;
  const auto at = [this](double ms) {
    return anchored_at_ +
           std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
  };
  trace_->add(track_, what, at(after_ms), at(after_ms + took_ms));
}

OperationTimes::~OperationTimes() {
  try {
    if (stream_ != nullptr) driver_.wait(stream_);
    collect();
  } catch (const Error&) {
    // A device that has failed reports no times.
  }
  for (const auto& [what, events] : pending_) free_.push_back(events);
  for (const auto& [first, second] : free_) {
    driver_.destroy(first);
    driver_.destroy(second);
  }
  if (anchor_ != nullptr) driver_.destroy(anchor_);
  if (printed_) print();
}

void OperationTimes::print() const {
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
