#include "core/base/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <string>

#include "core/base/error.h"

namespace cairn {
namespace {

std::size_t installed_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Control groups of version 2, as a container sees its own at the root of the mount. The file holds
// "max" where there is no bound, which does not read as a number; without control groups there is
// no file.
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

// A line is a name, a number and "kB", which means 1,024 bytes (proc(5)).
std::size_t private_memory_bytes(int pid) {
  std::ifstream status(str("/proc/", pid == 0 ? std::string("self") : str(pid), "/status"));
  std::size_t bytes = 0;
  for (std::string name; status >> name;
       status.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    std::size_t kilobytes = 0;
    if ((name == "RssAnon:" || name == "RssShmem:") && status >> kilobytes)
      bytes += kilobytes << 10;
  }
  return bytes;
}

std::string process_text() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return str("pid ", ::getpid(), " on host ", host.data());
}

}  // namespace cairn
