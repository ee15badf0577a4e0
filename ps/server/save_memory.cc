#include "ps/server/save_memory.h"

#include "core/base/device_cache.h"
#include "core/base/error.h"

namespace cairn::ps {

// Written as the memory of a device's cache is, whose error would speak of a device.
SaveMemory parse_save_memory(std::string_view text) {
  DeviceCache given;
  try {
    given = parse_device_cache(text);
  } catch (const InvalidArgumentError&) {
    throw InvalidArgumentError(
        str("\"", text,
            "\" is no memory for rows that are copied aside during a save: a share of the rows, as "
            "\"25%\" or \"0.25\", bytes with their unit, as \"2 GB\", or \"auto\""));
  }
  SaveMemory memory;
  if (given.share) memory.share = *given.share;
  if (given.bytes) memory.bytes = *given.bytes;
  return memory;
}

}  // namespace cairn::ps
