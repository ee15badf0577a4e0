#include "core/kernels/cuda/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/trace.h"
#include "core/kernels/cuda/build_id.h"

namespace cairn {
namespace {

constexpr const char* kFile = "libcairn_cuda.so";

// The folders in which the library is looked for, nearest first.
std::vector<std::filesystem::path> candidates() {
  if (const char* told = std::getenv("CAIRN_CUDA_LIBRARY")) return {told};
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  const auto folder = program.parent_path();
  return {folder / kFile, folder.parent_path() / "lib" / kFile};
}

// Without a driver the library is not even loaded: it would find nothing.
bool has_driver(std::string& absent) {
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    dlclose(driver);
    return true;
  }
  absent = "this machine has no NVIDIA driver (libcuda.so.1 is not found)";
  return false;
}

void open_library(const std::filesystem::path& path, cuda::OpenedDevices& opened) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    opened.absent = str(path.string(), " cannot be loaded: ", dlerror(),
                        "; it needs the CUDA 13 toolkit's libraries (set LD_LIBRARY_PATH)");
    return;
  }
  const auto build_id = reinterpret_cast<CairnCudaBuildId>(dlsym(library, "cairn_cuda_build_id"));
  const auto open = reinterpret_cast<CairnCudaOpen>(dlsym(library, "cairn_cuda_open"));
  if (build_id == nullptr || open == nullptr || std::string(build_id()) != cuda::build_id()) {
    opened.absent = str(path.string(), " is of another build than this program: install both anew");
    return;
  }
  open(cpu_device(), trace_sink(), opened);
}

cuda::OpenedDevices find_gpus() {
  cuda::OpenedDevices opened;
  const char* const told = std::getenv("CAIRN_CUDA_LIBRARY");
  if (told != nullptr && std::string(told) == "none") {
    opened.absent = "CAIRN_CUDA_LIBRARY=none";
    return opened;
  }
  if (!has_driver(opened.absent)) return opened;
  for (const auto& path : candidates()) {
    if (!std::filesystem::exists(path)) continue;
    open_library(path, opened);
    return opened;
  }
  opened.absent = str("this build has no ", kFile, " beside the program or in ../lib of it");
  return opened;
}

}  // namespace

const cuda::OpenedDevices& gpus() {
  static const cuda::OpenedDevices found = find_gpus();
  return found;
}

Device& gpu(int ordinal) {
  const auto& found = gpus();
  const auto count = static_cast<int>(found.devices.size());
  if (ordinal >= 0 && ordinal < count)
    return *found.devices[static_cast<std::size_t>(ordinal)].device;
  throw NotFoundError(str("there is no device gpu:", ordinal, ": ",
                          count == 0 ? found.absent : str("this machine has ", count, " of them")));
}

}  // namespace cairn
