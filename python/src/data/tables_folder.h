// Where tables are written that are too large to travel to workers.
#pragma once
#include <mutex>
#include <string>

#include "data/dataset/dataset.h"
#include "owner.h"

namespace cairn::python {

//   Thread  any.
class TablesFolder {
 public:
  // `path`: made at its first use, and removed with this object unless it was there before. Empty:
  // a new folder among the temporary files.
  explicit TablesFolder(std::string path) : path_(std::move(path)) {}
  ~TablesFolder();
  TablesFolder(const TablesFolder&) = delete;
  TablesFolder& operator=(const TablesFolder&) = delete;

  // The folder, which is there now.
  //   Errors  NotFound: its parent is none. PermissionDenied: it cannot be made.
  std::string path();

 private:
  std::mutex mutex_;  // the rest
  std::string path_;
  bool ready_ = false, made_ = false;
};

// The dataset as this strategy's workers can read it. Under parameter servers a description holds
// 64 MiB at most: the tables of a larger one are written into the strategy's folder, and so are
// ragged columns. Other strategies' datasets stay as they are.
//   Errors  those of writing; TablesFolder::path()'s.
//   Thread  with the GIL or without; it is released while files are written.
Dataset travelling(const Dataset& dataset, const SharedOwner& owner);

}  // namespace cairn::python
