// A saved model's folder takes its place at once: it is written beside that place first.
//   Thread  any that may block on files.
#pragma once
#include <string>
#include <utility>

namespace cairn {

// Removes the folder `path`, whatever it then holds, when this object is destroyed.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// `target` and an ending that no other thread of this process, nor any other process, uses.
std::string temporary_name(const std::string& target);

//   Errors  AlreadyExists: `folder` is something else than a saved model or an empty folder.
void verify_target(const std::string& folder);

// Gives the folder that was made the name `folder`. A saved model that was there has the name of
// `made` afterwards, and is removed with it. A crash leaves the old model or the new one.
//   Errors  as verify_target(); the disk's.
void put_in_place(const TemporaryFolder& made, const std::string& folder);

// Makes what was written into a folder last: its names, not the bytes of its files.
void sync_folder(const std::string& folder);

}  // namespace cairn
