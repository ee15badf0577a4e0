#include "core/machine.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace cairn {
namespace {

std::size_t installed_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// "max" where there is no bound: then nothing is read.
std::size_t allowed_bytes(std::size_t otherwise) {
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  std::size_t bytes = 0;
  return limit >> bytes && bytes > 0 ? bytes : otherwise;
}

}  // namespace

std::size_t machine_memory_bytes() {
  static const std::size_t bytes = std::min(installed_bytes(), allowed_bytes(installed_bytes()));
  return bytes;
}

}  // namespace cairn
