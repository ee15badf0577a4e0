#include "model/saved/model_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "model/saved/model_file.h"

namespace cairn {

TemporaryFolder::~TemporaryFolder() {
  try {
    system_disk().remove_tree(path_);
  } catch (const Error&) {  // its name shows that it is temporary
  }
}

std::string temporary_name(const std::string& target) {
  static std::atomic<int> made{0};
  return str(target, ".tmp-", ::getpid(), "-", ++made);
}

void verify_target(const std::string& folder) {
  if (!system_disk().exists(folder) || is_saved_model(folder)) return;
  if (std::filesystem::is_directory(folder) && std::filesystem::is_empty(folder)) return;
  throw AlreadyExistsError(str(folder, " is there already, and is no saved model: nothing else is ",
                               "replaced; name another folder, or remove it"));
}

void sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // it was just written to; what is lost with the power is the exchange alone
  ::fsync(fd);
  ::close(fd);
}

// Both names change hands at once, where the file system can do that; where it cannot, a crash
// between two renames leaves the old model under the name that goes on ".tmp-".
void put_in_place(const TemporaryFolder& made, const std::string& folder) {
  verify_target(folder);
  if (!is_saved_model(folder)) return system_disk().rename(made.path(), folder);
  if (::renameat2(AT_FDCWD, made.path().c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0)
    return sync_folder(folder_of(folder));
  const TemporaryFolder old(made.path() + "-old");
  system_disk().rename(folder, old.path());
  system_disk().rename(made.path(), folder);
}

}  // namespace cairn
