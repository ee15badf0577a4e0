#include "serving/model/block_files.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/disk/disk.h"

namespace cairn::serving {

BlockFiles::~BlockFiles() {
  for (const File& each : files_) ::close(each.descriptor);
}

std::size_t BlockFiles::open(const std::string& path) {
  // Otherwise each read updates the file's access time. Only the owner of a file may ask for that
  // to be left out.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOATIME);
  if (descriptor < 0 && errno == EPERM) descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && (errno == EMFILE || errno == ENFILE))
    throw ResourceExhaustedError(str("opening ", path, ": ", std::strerror(errno),
                                     ": a checkpoint's rows are read from all of its files; raise ",
                                     "the limit (ulimit -n), or consolidate the checkpoint"));
  if (descriptor < 0) raise_disk_error(errno, "opening", path);
  // Rows lie here and there; the kernel would read what is around each of them.
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
  files_.push_back({path, descriptor});
  return files_.size() - 1;
}

bool BlockFiles::read(std::size_t file, std::uint64_t at, std::size_t bytes, std::byte* out,
                      Wait wait) const {
  const File& of = files_[file];
  int flags = wait == Wait::kNo ? RWF_NOWAIT : 0;
  for (std::size_t done = 0; done < bytes;) {
    const iovec piece{out + done, bytes - done};
    const ssize_t read = ::preadv2(of.descriptor, &piece, 1, static_cast<off_t>(at + done), flags);
    if (read > 0) {
      done += static_cast<std::size_t>(read);
      continue;
    }
    if (read < 0 && errno == EINTR) continue;
    if (read < 0 && errno == EAGAIN && flags != 0) {
      // If that fails, the read that waits says why.
      ::posix_fadvise(of.descriptor, static_cast<off_t>(at + done),
                      static_cast<off_t>(bytes - done), POSIX_FADV_WILLNEED);
      return false;
    }
    if (read < 0 && errno == EOPNOTSUPP && flags != 0) {
      flags = 0;
      continue;
    }
    throw DataLossError(str("reading ", of.path, " at byte ", at + done, ": ",
                            read == 0 ? "it ends there" : std::strerror(errno),
                            ". Restore the file from a copy; `cairn ckpt verify` names the sound ",
                            "checkpoints"));
  }
  return true;
}

}  // namespace cairn::serving
