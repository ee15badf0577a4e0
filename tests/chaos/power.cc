#include "tests/chaos/power.h"

#include <filesystem>

#include "coordinator/journal/record_log.h"
#include "core/disk/disk.h"

namespace cairn::chaos {

void lose_unsynced(const std::string& journal, int percent) {
  for (const std::string& name : system_disk().list(journal)) {
    if (!name.starts_with("journal-")) continue;  // what is made is synced before it is referred to
    const std::string path = journal + "/" + name;
    const std::uint64_t size = system_disk().size(path), synced = synced_bytes(system_disk(), path);
    std::filesystem::resize_file(
        path, synced + (size - synced) * static_cast<std::uint64_t>(percent) / 100);
  }
}

}  // namespace cairn::chaos
