// The seam through which files are touched, so that tests can fill a disk, tear a write or lose
// power (core/disk/memory_disk.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/disk/appended_file.h"

namespace cairn {

// Throws the error that `error`, a value of errno, stands for. The message is "`doing` `path`: "
// and the system's own text, so `doing` is a participle: "opening".
[[noreturn]] void raise_disk_error(int error, std::string_view doing, const std::string& path);

// The exclusive right to something. It ends when this object is destroyed, or with the process,
// even one that is killed.
class DiskLock {
 public:
  virtual ~DiskLock() = default;
};

// Files and folders, by path.
//   Errors  NotFound, AlreadyExists, PermissionDenied, ResourceExhausted (the disk is full, or too
//           many files are open), DataLoss (it cannot be read), Unknown, each with the path.
//   Thread  any. Calls may block, so a loop hands them to an Offload.
class Disk {
 public:
  virtual ~Disk() = default;
  // The whole file, in memory.
  virtual std::string read(const std::string& path) const = 0;
  // Hands the file's bytes to `take`, in order, in pieces of at most about a megabyte, while the
  // next ones are read ahead: for files that are too large to hold, and are looked at once.
  virtual void read_in_pieces(const std::string& path,
                              const std::function<void(std::string_view)>& take) const {
    take(read(path));
  }
  // Replaces the file as a whole: written beside it, synced, renamed over it, and the directory
  // synced. After a crash either the old bytes or the new ones are there, never a mixture. A file
  // that is left beside it ends in ".tmp".
  virtual void write_atomically(const std::string& path, std::string_view bytes) = 0;
  // Writes a file that must not be there yet, as a whole: of several writers at once one does it,
  // on several machines with a shared file system too. `single`: the caller is the only writer,
  // where the store could not tell.
  //   Errors  AlreadyExists: there is one. Unimplemented: the store cannot tell, and `single` does
  //           not say that it need not.
  enum class SingleWriter : bool { kNo, kYes };
  virtual void write_new(const std::string& path, std::string_view bytes, SingleWriter single);
  // Opens a file that grows, and makes it if there is none. The name of one that is made survives a
  // crash.
  //   Errors  AlreadyExists, under kRefuse. Unimplemented: the store has only whole files.
  virtual std::unique_ptr<AppendedFile> append(const std::string& path,
                                               AppendedFile::Existing existing);
  virtual bool exists(const std::string& path) const = 0;
  virtual std::uint64_t size(const std::string& path) const = 0;
  // The names in it, without the folder, sorted; empty if there is no such folder.
  virtual std::vector<std::string> list(const std::string& folder) const = 0;
  // Makes the folder and its parents; fine if it exists.
  virtual void make_folder(const std::string& path) = 0;
  // Removes a file; fine if it is absent.
  virtual void remove(const std::string& path) = 0;
  // Removes a folder with all that is in it, or a file; fine if it is absent. Not atomic: after a
  // crash any part of it may be left.
  virtual void remove_tree(const std::string& path) = 0;
  // Removes what killed writers have left of files whose paths begin with `path` and that never
  // became files: parts of uploads to a store. None of them may be in progress.
  //   Result  how many there were.
  virtual std::size_t remove_unfinished(const std::string& /*path*/) { return 0; }
  // Renames a file or a folder, replacing a file that has the new name, and syncs the folders of
  // both names, so that the rename survives a crash.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // Makes the folder `to`, with these files of the folder `from` in it: the same files under other
  // names where the file system has that, copies otherwise. None of them may be changed afterwards.
  virtual void link_files(const std::string& from, const std::string& to,
                          const std::vector<std::string>& names) {
    make_folder(to);
    for (const std::string& name : names)
      write_atomically(to + "/" + name, read(from + "/" + name));
  }
  // Whether files below `path` can have several names. Where they cannot, a file that two need is
  // named by both, and stays while one of them does.
  virtual bool has_links(const std::string& /*path*/) const { return true; }
  // Locks the file `path`, which is created if it is missing. `holder` is written into it: another
  // process that finds the lock taken gets that text with its error. On a file system without locks
  // this warns, and returns a lock that excludes no other process.
  //   Errors  FailedPrecondition: it stayed taken for `patience`; its message is what the holder
  //           wrote.
  virtual std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder,
                                         Duration patience) = 0;
};

// The machine's file system. Lives as long as the process.
Disk& system_disk();

// The path without its last name; "." for a bare name.
std::string folder_of(const std::string& path);

}  // namespace cairn
