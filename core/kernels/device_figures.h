// The figures of a device with memory of its own and of its use, for people: `cairn status`, the
// live line of a run, its report.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace cairn {

struct DeviceFigures {
  std::string model;             // "NVIDIA H100 80GB HBM3"
  std::size_t memory_bytes = 0;  // that the device has
  // Allocated by this process. Memory that the driver and its libraries take for themselves, some
  // hundred megabytes, is not included.
  std::size_t variables_bytes = 0;  // of rows and slots
  std::size_t cache_bytes = 0;      // of rows of tables that lie in the host's memory
  // The share of requested rows that caches of tables held already, since the process began. Within
  // a batch each different row counts once. nullopt: nothing was cached.
  std::optional<double> cache_found;
  std::size_t values_bytes = 0;   // of steps: arenas, constants
  std::size_t scratch_bytes = 0;  // that kernels keep
  // Host memory that was registered for copies without a detour, such as memory shared with ps of
  // this host.
  std::size_t registered_bytes = 0;
  // The share of the last moments in which the device computed for any process, as the driver
  // samples it; nullopt: the driver does not say.
  std::optional<int> busy_percent;

  std::size_t used_bytes() const {
    return variables_bytes + cache_bytes + values_bytes + scratch_bytes;
  }
};

}  // namespace cairn
