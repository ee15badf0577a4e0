#include "core/kernels/cuda/trees/kernel_folder.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>

#include "core/base/error.h"
#include "core/base/sha256.h"

namespace cairn::cuda {
namespace {

namespace fs = std::filesystem;

// A file is the hash of the code, and the code.
constexpr std::size_t kHashBytes = 64;

std::string_view environment(const char* name) {
  const char* const told = std::getenv(name);
  return told == nullptr ? "" : told;
}

}  // namespace

fs::path KernelFolder::of_environment() {
  if (const auto told = environment("CAIRN_KERNEL_CACHE"); !told.empty())
    return told == "none" ? fs::path() : fs::path(told);
  if (const auto caches = environment("XDG_CACHE_HOME"); !caches.empty())
    return fs::path(caches) / "cairn" / "kernels";
  const auto home = environment("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache" / "cairn" / "kernels";
}

fs::path KernelFolder::file_of(std::string_view key) const {
  return folder_ / (sha256(key) + ".cubin");
}

std::optional<std::string> KernelFolder::find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(file_of(key), std::ios::binary);
  std::string all{std::istreambuf_iterator<char>(file), {}};
  if (!file || all.size() < kHashBytes) return std::nullopt;
  std::string code = all.substr(kHashBytes);
  if (all.compare(0, kHashBytes, sha256(code)) != 0) return std::nullopt;
  return code;
}

// Under another name at first: a reader finds all of a file or none.
void KernelFolder::keep(std::string_view key, std::string_view code) const noexcept {
  if (folder_.empty()) return;
  static std::atomic<unsigned> count{0};
  try {
    std::error_code failed;
    fs::create_directories(folder_, failed);
    const fs::path part = folder_ / str("part-", ::getpid(), "-", ++count);
    std::ofstream file(part, std::ios::binary);
    file << sha256(code) << code;
    file.close();
    if (file) fs::rename(part, file_of(key), failed);
    if (!file || failed) fs::remove(part, failed);
  } catch (const std::exception&) {
    // No memory: the next process compiles the kernel again.
  }
}

}  // namespace cairn::cuda
