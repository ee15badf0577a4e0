// KernelFolder: compiled kernels as files, so that only the first process on a machine compiles
// them. A file that is damaged or cannot be read or written is as good as none; several processes
// may use a folder at once.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::cuda {

class KernelFolder {
 public:
  // CAIRN_KERNEL_CACHE if it is set, where "none" stands for nowhere; else cairn/kernels in
  // XDG_CACHE_HOME or in ~/.cache. Empty: nowhere.
  static std::filesystem::path of_environment();

  // Is made with its first file. Empty: nothing is found and nothing is kept.
  explicit KernelFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `key` is all that the code depends on.
  //   Thread  any.
  std::optional<std::string> find(std::string_view key) const;
  void keep(std::string_view key, std::string_view code) const noexcept;

 private:
  std::filesystem::path file_of(std::string_view key) const;
  const std::filesystem::path folder_;
};

}  // namespace cairn::cuda
