// A process's allocations of a device's memory, by what they are for.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cairn::cuda {

enum class Use : std::uint8_t {
  kVariables,
  kValues,   // of steps
  kScratch,  // of prepared kernels
  kCache,    // of tables that lie in the host's memory
};

// Thread: any.
class MemoryUse {
 public:
  void add(Use use, std::size_t bytes) { of_use(use) += bytes; }
  void remove(Use use, std::size_t bytes) { of_use(use) -= bytes; }
  std::size_t bytes(Use use) const { return bytes_[static_cast<std::size_t>(use)]; }

 private:
  std::atomic<std::size_t>& of_use(Use use) { return bytes_[static_cast<std::size_t>(use)]; }
  std::array<std::atomic<std::size_t>, 4> bytes_{};
};

// "79.6 GiB", "12.5 MiB", "128 bytes".
std::string bytes_text(std::size_t bytes);
// The message for a user whose device has no memory left: behind `missing`, which names the device
// and the bytes it lacks, the message says how many bytes this process has of the device, what
// these are for, and what helps.
std::string exhausted_text(const std::string& missing, Use wanted, const MemoryUse& use);

}  // namespace cairn::cuda
