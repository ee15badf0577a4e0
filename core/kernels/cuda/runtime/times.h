// How long each operation takes on the device, measured between two events. CAIRN_GPU_TIMES=1 has
// a table of it printed on standard error when a workspace ends. A process that records a trace
// (core/disk/trace.h) has the operations in it, on a track beside those of the host's threads.
// Either way steps are not recorded for replay, because events stand between their operations.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/disk/trace.h"
#include "core/kernels/cuda/runtime/driver.h"

namespace cairn::cuda {

// Thread: the queue's.
class OperationTimes {
 public:
  static bool are_printed();

  // `trace`, which outlives it: what takes the spans, as those of `track`; null: nothing does.
  OperationTimes(Driver& driver, bool printed, SpanSink* trace, std::string track);
  // Prints the table, if that is wanted.
  ~OperationTimes();
  OperationTimes(const OperationTimes&) = delete;
  OperationTimes& operator=(const OperationTimes&) = delete;

  // Runs `enqueue` between two events. All calls name one stream.
  void time(const std::string& what, Stream stream, const std::function<void()>& enqueue);
  // Reads the events so far; the stream has been waited for.
  void collect();

 private:
  struct Total {
    double ms = 0;
    std::int64_t runs = 0;
  };
  void set_anchor(Stream stream);
  void record(const std::string& what, std::pair<Event, Event> events, double took_ms);
  void print() const;

  Driver& driver_;
  const bool printed_;
  SpanSink* const trace_;
  const std::string track_;
  Stream stream_ = nullptr;
  std::vector<std::pair<Event, Event>> free_;
  std::vector<std::pair<std::string, std::pair<Event, Event>>> pending_;
  std::map<std::string, Total> totals_;
  // An event, and when the host saw that it had been reached: the device's clock gives differences
  // alone.
  Event anchor_ = nullptr;
  bool anchored_ = false;
  TimePoint anchored_at_{};
};

}  // namespace cairn::cuda
