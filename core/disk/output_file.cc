#include "core/disk/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/disk/disk.h"

namespace cairn {
namespace {
namespace fs = std::filesystem;

constexpr int kLinksMax = 40;       // as the kernel has it (path_resolution(7))
constexpr int kReaderPolls = 100;   // how often a FIFO without a reader is tried,
constexpr int kReaderPollMs = 100;  // and how long after one another

// /dev/stdout is a chain of links that ends in /proc/self/fd/1, and that one may read
// "pipe:[4711]", which is no path. Such names are opened as they are and never followed by hand.
bool of_the_system(const fs::path& path) {
  const std::string text = path.lexically_normal().string();
  return text.starts_with("/dev/") || text.starts_with("/proc/");
}

// Opening a FIFO for writing waits until a process reads it, without a limit; here for ten seconds
// at most. With O_NONBLOCK the call fails with ENXIO while there is no reader (fifo(7)).
int open_in_place(const std::string& path) {
  for (int polls = 0;; ++polls) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
      ::fcntl(fd, F_SETFL, O_APPEND);  // blocking from here on: a write may wait for the reader
      return fd;
    }
    if (errno != ENXIO) raise_disk_error(errno, "opening", path);
    if (polls == kReaderPolls)
      throw UnavailableError(
          str("nobody reads ", path, ": begin to read it before the output is written"));
    ::poll(nullptr, 0, kReaderPollMs);
  }
}

}  // namespace

// Links are followed here and not by realpath(), because the last one may point to a file that does
// not exist yet and is to be made.
OutputPlace output_place(const std::string& path) {
  fs::path at = fs::absolute(path);
  for (int links = 0;; ++links) {
    struct stat found {};
    if (of_the_system(at) && ::stat(at.c_str(), &found) == 0 && !S_ISDIR(found.st_mode))
      return {at.string(), true, 0};
    if (::lstat(at.c_str(), &found) != 0) {
      if (errno == ENOENT) return {at.string(), false, 0};
      raise_disk_error(errno, "looking for", at.string());
    }
    if (S_ISDIR(found.st_mode)) throw InvalidArgumentError(str(path, " is a folder: name a file"));
    if (S_ISREG(found.st_mode))
      return {at.string(), false, static_cast<std::uint64_t>(found.st_size)};
    if (!S_ISLNK(found.st_mode)) return {at.string(), true, 0};
    if (links == kLinksMax)
      throw InvalidArgumentError(str(path, " is a symbolic link that leads nowhere: name a file"));
    at = (at.parent_path() / fs::read_symlink(at)).lexically_normal();
  }
}

OutputFile::OutputFile(const std::string& path)
    : place_(output_place(path)), written_(place_.path) {
  if (place_.in_place) {
    fd_ = open_in_place(written_);
    return;
  }
  written_ += str(".", ::getpid(), ".part");
  fd_ = ::open(written_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) raise_disk_error(errno, "creating", place_.path);
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!place_.in_place) ::unlink(written_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) raise_disk_error(errno, "writing", place_.path);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

// The same order as Disk::write_atomically(): synced, closed, renamed. What is written in place
// cannot be synced (a FIFO refuses it), and an error of its close() has nothing to undo.
void OutputFile::finish(const std::string& ending) {
  if (!place_.in_place && ::fsync(fd_) != 0) raise_disk_error(errno, "syncing", place_.path);
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0 && !place_.in_place) {  // a full disk may tell only here
    const int error = errno;
    ::unlink(written_.c_str());
    raise_disk_error(error, "closing", place_.path);
  }
  if (!place_.in_place) system_disk().rename(written_, place_.path + ending);
}

}  // namespace cairn
