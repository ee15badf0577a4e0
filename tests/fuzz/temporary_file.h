// A file in memory under a path of its own, for readers that open paths.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace cairn::fuzz {

class TemporaryFile {
 public:
  explicit TemporaryFile(Bytes bytes) : fd_(::memfd_create("cairn-fuzz", MFD_CLOEXEC)) {
    CAIRN_CHECK(
        fd_ >= 0 && ::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
        "no file in memory");
  }
  ~TemporaryFile() { ::close(fd_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return str("/proc/self/fd/", fd_); }

 private:
  int fd_;
};

}  // namespace cairn::fuzz
