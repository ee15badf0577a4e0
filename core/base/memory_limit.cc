#include "core/base/memory_limit.h"

#include "core/base/device_cache.h"
#include "core/base/error.h"
#include "core/base/machine.h"

namespace cairn {

// Written as the memory of a device's cache is, whose error would speak of a device.
std::size_t parse_memory_limit(std::string_view text) {
  if (text == "none") return 0;
  try {
    const DeviceCache given = parse_device_cache(text);
    if (given.given()) return given.bytes_of(machine_memory_bytes());
  } catch (const InvalidArgumentError&) {
    // This one says it.
  }
  throw InvalidArgumentError(
      str("\"", text,
          "\" is no bound on memory: bytes with their unit, as \"8 GB\", a share of "
          "the machine's memory, as \"50%\", or \"none\""));
}

}  // namespace cairn
