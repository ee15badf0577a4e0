// watch: a line for each checkpoint from when it is committed.
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/support.h"

namespace cairn::tools::ckpt {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);

// A run's folder has its checkpoints in one of its own, which may be yet to come.
std::vector<storage::CheckpointEntry> list_at(const std::string& path) {
  auto found = storage::CheckpointFolder(storage::any_disk(), path).list();
  return found.empty()
             ? storage::CheckpointFolder(storage::any_disk(), path + "/checkpoints").list()
             : found;
}

// One line each, as JSON too, and flushed: a script reads them as they come.
void tell(const std::string& path, Form form) {
  const storage::Manifest manifest = storage::read_manifest(storage::any_disk(), path);
  std::uint64_t bytes = 0;
  for (const auto& database : manifest.databases) bytes += database.bytes;
  if (form == Form::kJson)
    std::printf("%s\n", json_text({{"path", path},
                                   {"global_step", manifest.global_step},
                                   {"saved_at", time_text(manifest.saved_at_us)},
                                   {"bytes", bytes},
                                   {"base", manifest.base}})
                            .c_str());
  else
    std::printf("%s  step %-9lld %s  %s\n", path.c_str(),
                static_cast<long long>(manifest.global_step),
                time_text(manifest.saved_at_us).c_str(), megabytes(bytes).c_str());
  std::fflush(stdout);
}

}  // namespace

int watch(const WatchRequest& request) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(request.timeout_s));
  std::set<std::uint64_t> known;
  for (const auto& entry : list_at(request.folder)) known.insert(entry.id);
  for (std::uint64_t told = 0;;) {
    for (const auto& entry : list_at(request.folder)) {
      if (!known.insert(entry.id).second) continue;
      try {
        tell(entry.path, request.form);
      } catch (const NotFoundError&) {
        continue;  // it went again, between two looks
      }
      if (++told == request.count) return kFine;
    }
    if (request.timeout_s > 0 && Clock::now() >= until) return request.count == 0 ? kFine : kFound;
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace cairn::tools::ckpt
