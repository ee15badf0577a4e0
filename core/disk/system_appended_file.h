// SystemAppendedFile: an AppendedFile of the machine's file system.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/disk/appended_file.h"

namespace cairn {

class SystemAppendedFile final : public AppendedFile {
 public:
  //   Errors  NotFound: there is no such folder; PermissionDenied; AlreadyExists, under kRefuse.
  SystemAppendedFile(std::string path, Existing existing);
  ~SystemAppendedFile() override;

  void write(std::string_view bytes) override;
  void sync() override;
  std::uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  int fd_;
  std::uint64_t size_ = 0;
};

}  // namespace cairn
