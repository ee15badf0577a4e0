// What a process has allocated of a device's memory, by what it is for.
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
// What a user is told who has run into the end of a device's memory: behind `missing`, which says
// of which device and by how much, what this process has of it, what the bytes were for, and what
// helps.
std::string exhausted_text(const std::string& missing, Use wanted, const MemoryUse& use);

}  // namespace cairn::cuda
