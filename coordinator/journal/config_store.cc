#include "coordinator/journal/config_store.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/disk/disk.h"

namespace cairn {
namespace {

constexpr std::string_view kPrefix = "config-";
// A reader that has listed the folder may still be about to read what was the newest then.
constexpr std::uint64_t kVersionsKept = 8;

// The number of a version's file; none: it is another file, such as one that a killed writer left.
std::optional<std::uint64_t> version_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

// One line with the checksum of the rest.
std::string sealed(const std::string& text) { return str(crc32c(text), "\n", text); }

class FileConfigStore final : public ConfigStore {
 public:
  FileConfigStore(Disk& disk, std::string folder) : disk_(disk), folder_(std::move(folder)) {
    disk_.make_folder(folder_);
  }

  Version read() override {
    // A version that was listed may be removed before it is read, once others have followed it.
    for (int tries = 0;; ++tries) {
      const std::vector<std::uint64_t> there = versions();
      if (there.empty()) return {};
      const std::uint64_t newest = there.back();
      try {
        return {newest, opened(path(newest))};
      } catch (const NotFoundError&) {
        if (tries == 100) throw;
      }
    }
  }

  bool replace(std::uint64_t after, const std::string& text) override {
    try {
      disk_.write_new(path(after + 1), sealed(text), Disk::SingleWriter::kNo);
    } catch (const AlreadyExistsError&) {
      return false;
    }
    // Others may have gone on for so long that the version had been there, and is removed by now.
    // Then what it was to follow is removed as well.
    if (after > 0 && !disk_.exists(path(after))) {
      disk_.remove(path(after + 1));
      return false;
    }
    for (const std::uint64_t version : versions())
      if (version + kVersionsKept <= after + 1) disk_.remove(path(version));
    return true;
  }

  std::string where() const override { return folder_; }

 private:
  std::string path(std::uint64_t version) const { return str(folder_, "/", kPrefix, version); }

  std::vector<std::uint64_t> versions() const {
    std::vector<std::uint64_t> all;
    for (const std::string& name : disk_.list(folder_))
      if (const auto version = version_of(name)) all.push_back(*version);
    std::ranges::sort(all);
    return all;
  }

  std::string opened(const std::string& from) const {
    const std::string all = disk_.read(from);
    const std::size_t line = all.find('\n');
    std::string text = line == std::string::npos ? std::string() : all.substr(line + 1);
    if (line == std::string::npos || sealed(text) != all)
      throw DataLossError(
          str(from, " is damaged: its checksum is wrong. Remove it, if no ",
              "coordinator of the cluster runs: the version before it counts then"));
    return text;
  }

  Disk& disk_;
  const std::string folder_;
};

}  // namespace

std::unique_ptr<ConfigStore> make_file_config_store(Disk& disk, std::string folder) {
  return std::make_unique<FileConfigStore>(disk, std::move(folder));
}

}  // namespace cairn
