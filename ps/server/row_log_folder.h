// RowLogFolder: the folder of one ps for rows that do not fit in memory, below one that several may
// share. It goes with its owner; those that a ps has left which was killed go when another begins.
#pragma once
#include <string>

namespace cairn::ps {

class RowLogFolder {
 public:
  // Makes `shared`/`name`-PID, and removes folders beside it that no living process has.
  //   Errors  PermissionDenied: it cannot be made or locked; names it.
  RowLogFolder(const std::string& shared, const std::string& name);
  ~RowLogFolder();
  RowLogFolder(const RowLogFolder&) = delete;
  RowLogFolder& operator=(const RowLogFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace cairn::ps
