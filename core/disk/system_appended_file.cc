#include "core/disk/system_appended_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/disk/disk.h"

namespace cairn {

SystemAppendedFile::SystemAppendedFile(std::string path, Existing existing)
    : path_(std::move(path)) {
  const int create = existing == Existing::kRefuse ? O_CREAT | O_EXCL : O_CREAT;
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | create, 0644);
  if (fd_ < 0) raise_disk_error(errno, "opening", path_);
  struct stat found {};
  if (::fstat(fd_, &found) == 0) size_ = static_cast<std::uint64_t>(found.st_size);
}

SystemAppendedFile::~SystemAppendedFile() { ::close(fd_); }

// A device that cannot be cut back, such as /dev/full, has not kept a part of it either.
void SystemAppendedFile::write(std::string_view bytes) {
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      if (rest.size() < bytes.size()) (void)!::ftruncate(fd_, static_cast<off_t>(size_));
      raise_disk_error(error, "writing", path_);
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  size_ += bytes.size();
}

void SystemAppendedFile::sync() {
  if (::fdatasync(fd_) != 0) raise_disk_error(errno, "syncing", path_);
}

}  // namespace cairn
