// Where a step's time goes: spans by process and thread, on the host's monotonic clock, which all
// of its processes share. What is not done by a thread, such as the work of a GPU, has tracks of
// its own beside them.
//
// Off, at the cost of one load per span, unless the environment variable CAIRN_TRACE names a folder
// when the process starts. Then the newest spans are kept in memory and written there when the
// process ends, one file per process: the events of Chrome's trace format, which tools/bench
// --trace joins.
//   Source  "Trace Event Format", the Chromium project.
//   Thread  any.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "core/base/clock.h"

namespace cairn {

namespace trace_detail {
extern std::atomic<bool> on;
}

inline bool tracing() { return trace_detail::on.load(std::memory_order_relaxed); }
// As if CAIRN_TRACE had named `folder`, for this process and those that it starts from now on. Call
// it before the process has other threads: it sets an environment variable.
void start_trace(const std::string& folder);

// Records a span of one thread's work: spans of a thread lie beside or within each other. `name`
// must be a literal, or live as long as the process; `closure` 0: of no closure.
void record_span(const char* name, TimePoint begin, TimePoint end, std::uint64_t closure);
// Records a span of something that waits, such as a call: others of its thread may begin and end
// meanwhile.
void record_overlapping_span(const char* name, TimePoint begin, TimePoint end,
                             std::uint64_t closure);

// A span from here to the end of the scope. kOverlapping: others of the same thread may begin and
// end meanwhile, as across a co_await.
class TraceSpan {
 public:
  enum class Kind : std::uint8_t { kWork, kOverlapping };
  explicit TraceSpan(const char* name, std::uint64_t closure = 0, Kind kind = Kind::kWork)
      : name_(name), closure_(closure), kind_(kind) {
    if (tracing()) begin_ = std::chrono::steady_clock::now();
  }
  ~TraceSpan() {
    if (tracing()) end();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  void end() const;
  const char* name_;
  std::uint64_t closure_;
  Kind kind_;
  TimePoint begin_{};
};

// Takes spans that were measured elsewhere, as on a device. A library that is loaded at run time is
// given the process's own.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  // As tracing().
  virtual bool wanted() const = 0;
  // Records a span on a row of its own in the viewer, named `track`; spans of a track lie beside or
  // within each other.
  virtual void add(const std::string& track, const std::string& name, TimePoint begin,
                   TimePoint end) = 0;
};
// This process's; it lives as long as the process.
SpanSink& trace_sink();

// Writes what was kept, now.
//   Errors  those of writing a file.
void write_trace();

}  // namespace cairn
