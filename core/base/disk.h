// The seam through which files are touched, so that tests can fill a disk, tear a write or lose
// power.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"

namespace cairn {

// The error that the system's number means, naming the file and what was being done with it.
[[noreturn]] void raise_disk_error(int error, std::string_view doing, const std::string& path);

// The right to something that one process has at a time, until this goes or the process does.
class DiskLock {
 public:
  virtual ~DiskLock() = default;
};

// Errors: NotFound, AlreadyExists, PermissionDenied, ResourceExhausted (disk full), DataLoss
// (cannot be read), each with the path. Thread: any; calls may block, so a loop hands them to
// Offload.
class Disk {
 public:
  virtual ~Disk() = default;
  // the whole file
  virtual std::string read(const std::string& path) const = 0;
  // Replaces the file as a whole: written beside, synced, renamed, directory synced. After a crash
  // the old or the new is there.
  virtual void write_atomically(const std::string& path, std::string_view bytes) = 0;
  virtual bool exists(const std::string& path) const = 0;
  virtual std::uint64_t size(const std::string& path) const = 0;
  // names, sorted; empty if there is no such folder
  virtual std::vector<std::string> list(const std::string& folder) const = 0;
  // with its parents; fine if it exists
  virtual void make_folder(const std::string& path) = 0;
  // a file; fine if absent
  virtual void remove(const std::string& path) = 0;
  virtual void remove_tree(const std::string& path) = 0;
  // and syncs the folder
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // Locks the file `path`, which is created if it is missing. `holder` is written into it: another
  // process that finds the lock taken gets that text with its error. On a file system without locks
  // this warns, and returns a lock that keeps nobody out.
  //   Errors  FailedPrecondition: it stayed taken for `patience`; its text is what the holder
  //           wrote.
  virtual std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder,
                                         Duration patience) = 0;
};

Disk& system_disk();

std::string folder_of(const std::string& path);  // "." for a bare name

}  // namespace cairn
