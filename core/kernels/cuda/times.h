// What each operation takes on the device, for whoever sets CAIRN_GPU_TIMES=1: a table on standard
// error when a workspace ends. Steps are then not recorded, because events stand between their
// operations.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/kernels/cuda/driver.h"

namespace cairn::cuda {

// Thread: the queue's.
class OperationTimes {
 public:
  static bool wanted();

  explicit OperationTimes(Driver& driver) : driver_(driver) {}
  // Prints the table.
  ~OperationTimes();
  OperationTimes(const OperationTimes&) = delete;
  OperationTimes& operator=(const OperationTimes&) = delete;

  // Runs `enqueue` between two events.
  void time(const std::string& what, Stream stream, const std::function<void()>& enqueue);
  // Reads the events so far; the stream has been waited for.
  void collect();

 private:
  struct Total {
    double ms = 0;
    std::int64_t runs = 0;
  };
  Driver& driver_;
  std::vector<std::pair<Event, Event>> free_;
  std::vector<std::pair<std::string, std::pair<Event, Event>>> pending_;
  std::map<std::string, Total> totals_;
};

}  // namespace cairn::cuda
