#include "core/kernels/cuda/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/disk/trace.h"
#include "core/kernels/cuda/build_id.h"

namespace cairn {
namespace {

constexpr const char* kFile = "libcairn_cuda.so";

// Where the library may lie, nearest first.
std::vector<std::filesystem::path> candidates() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  const auto folder = program.parent_path();
  return {folder / kFile, folder.parent_path() / "lib" / kFile};
}

// Distinguishes a machine without a GPU from one whose GPU has no driver.
std::string no_driver_text() {
  const std::vector<std::string> found = gpus_on_bus();
  if (found.empty()) return "this machine has no NVIDIA driver (libcuda.so.1 is not found)";
  std::string places;
  for (const std::string& one : found) places += (places.empty() ? "" : ", ") + one;
  return str("this machine has ", found.size() == 1 ? "an NVIDIA GPU" : "NVIDIA GPUs", " (PCI ",
             places,
             ") and no driver that this program finds (libcuda.so.1): install it, or give the "
             "container its GPUs");
}

// Without a driver the library is not even loaded: it would find nothing.
bool has_driver() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver != nullptr) dlclose(driver);
  return driver != nullptr;
}

// The loader's own words, which may begin with the file's name again.
std::string cannot_load_text(const std::string& path, std::string reason) {
  if (reason.starts_with(path + ": ")) reason = reason.substr(path.size() + 2);
  const bool lacks_another = reason.find("cannot open shared object file") != std::string::npos;
  return str(
      path, " cannot be loaded: ", reason,
      lacks_another ? "; it needs the CUDA 13 toolkit's libraries (set LD_LIBRARY_PATH)" : "");
}

void open_library(const std::string& path, cuda::OpenedDevices& opened) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    opened.absent = cannot_load_text(path, dlerror());
    return;
  }
  const auto build_id = reinterpret_cast<CairnCudaBuildId>(dlsym(library, "cairn_cuda_build_id"));
  const auto open = reinterpret_cast<CairnCudaOpen>(dlsym(library, "cairn_cuda_open"));
  if (build_id == nullptr || open == nullptr) {
    opened.absent = str(path, " is another library than Cairn's ", kFile);
    return;
  }
  if (std::string(build_id()) != cuda::build_id()) {
    opened.absent = str(path, " is of another build than this program: install both anew");
    return;
  }
  open(cpu_device(), trace_sink(), opened);
}

// CAIRN_CUDA_LIBRARY names a library: that one is used, or none.
void open_told(const std::string& told, cuda::OpenedDevices& opened) {
  if (!std::filesystem::exists(told))
    opened.absent = str("CAIRN_CUDA_LIBRARY names ", told, ", which is not there");
  else
    open_library(told, opened);
}

cuda::OpenedDevices find_gpus() {
  cuda::OpenedDevices opened;
  const char* const told = std::getenv("CAIRN_CUDA_LIBRARY");
  if (told != nullptr && std::string(told) == "none") {
    opened.absent = "CAIRN_CUDA_LIBRARY=none";
    return opened;
  }
  if (!has_driver()) {
    opened.absent = no_driver_text();
    return opened;
  }
  if (told != nullptr) {
    open_told(told, opened);
    return opened;
  }
  for (const auto& path : candidates()) {
    if (!std::filesystem::exists(path)) continue;
    open_library(path.string(), opened);
    return opened;
  }
  opened.absent = str("this build has no ", kFile,
                      " beside the program or in ../lib of it: build it where the CUDA 13 toolkit "
                      "is");
  return opened;
}

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

// Its vendor is NVIDIA, and its class is a display's, which those without a socket for a screen
// have too.
std::vector<std::string> gpus_on_bus(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator(folder, none))
    if (first_line(device.path() / "vendor") == "0x10de" &&
        first_line(device.path() / "class").starts_with("0x03"))
      found.push_back(device.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

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
