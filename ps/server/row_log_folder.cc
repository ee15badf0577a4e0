#include "ps/server/row_log_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/base/error.h"
#include "core/base/log.h"

namespace cairn::ps {
namespace {

// The kernel lets go of a lock when its process dies, whatever the process number is taken for
// since. Returns -1 if another one holds it, or it cannot be made.
int lock_of(const std::string& folder) {
  const int lock = ::open((folder + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  if (lock >= 0) ::close(lock);
  return -1;
}

void remove_left(const std::string& shared, const std::string& own) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(shared, error)) {
    const std::string path = entry.path();
    if (path == own || !entry.path().filename().string().starts_with("ps-") ||
        !std::filesystem::exists(path + "/lock", error))
      continue;
    const int lock = lock_of(path);
    if (lock < 0) continue;
    log_info("removing ", path, ", which a ps has left that was killed");
    std::filesystem::remove_all(path, error);
    ::close(lock);
  }
}

}  // namespace

RowLogFolder::RowLogFolder(const std::string& shared, const std::string& name)
    : path_(str(shared, "/", name, "-", ::getpid())) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error)
    throw PermissionDeniedError(
        str("cannot make the folder ", path_, " for rows: ", error.message()));
  lock_ = lock_of(path_);
  if (lock_ < 0)
    throw PermissionDeniedError(str("cannot lock ", path_, "/lock: ", std::strerror(errno),
                                    "; give --row-log a folder on a local disk"));
  remove_left(shared, path_);
}

RowLogFolder::~RowLogFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  ::close(lock_);
}

}  // namespace cairn::ps
