// The file system by system calls. std::fstream is not used, because it reports neither which call
// failed nor its errno, and cannot sync.
#include "core/disk/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/failpoint.h"
#include "core/base/log.h"
#include "core/disk/system_appended_file.h"

namespace cairn {
namespace {

// Each code is what a caller can act on: PermissionDenied and ResourceExhausted (which includes too
// many open files) are for the user to mend, DataLoss means that the medium failed and another
// checkpoint is wanted. ENOTDIR is NotFound, since "file/name" does not exist.
Code code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return Code::kNotFound;
    case EEXIST: return Code::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS: return Code::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE: return Code::kResourceExhausted;
    case EIO: return Code::kDataLoss;
    default: return Code::kUnknown;
  }
}

}  // namespace

void raise_disk_error(int error, std::string_view doing, const std::string& path) {
  throw_error(code_of(error), str(doing, " ", path, ": ", std::generic_category().message(error)));
}

namespace {

int check(int result, std::string_view doing, const std::string& path) {
  if (result < 0) raise_disk_error(errno, doing, path);
  return result;
}

void check(const std::error_code& error, std::string_view doing, const std::string& path) {
  if (error) raise_disk_error(error.value(), doing, path);
}

class File {
 public:
  File(const std::string& path, int flags, std::string_view doing)
      : path_(path), fd_(check(::open(path.c_str(), flags | O_CLOEXEC, 0644), doing, path)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // write() may take less than it was given, and may be interrupted by a signal: go on with the
  // rest. The count is cut to 1 before it becomes an int, so that a count of 2 GB or more is not
  // mistaken for an error.
  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      check(static_cast<int>(std::min<ssize_t>(n, 1)), "writing", path_);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  std::string read_all() const {
    std::string bytes;
    char buffer[1 << 16];
    for (;;) {
      ssize_t n = ::read(fd_, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      check(static_cast<int>(std::min<ssize_t>(n, 1)), "reading", path_);
      if (n == 0) return bytes;
      bytes.append(buffer, static_cast<std::size_t>(n));
    }
  }
  // The kernel is asked some pieces ahead, so that the disk works while `take` does.
  void read_in_pieces(const std::function<void(std::string_view)>& take) const {
    constexpr off_t kPiece = off_t{1} << 20, kAhead = 8 * kPiece;
    std::vector<char> buffer(static_cast<std::size_t>(kPiece));
    for (off_t at = 0;;) {
      // Advice: where it is not taken, reading is slower.
      if (at % (kAhead / 2) == 0) ::posix_fadvise(fd_, at, kAhead, POSIX_FADV_WILLNEED);
      const off_t wanted = kPiece - at % kPiece;  // pieces stay aligned after a short read
      const ssize_t n = ::pread(fd_, buffer.data(), static_cast<std::size_t>(wanted), at);
      if (n < 0 && errno == EINTR) continue;
      check(static_cast<int>(std::min<ssize_t>(n, 1)), "reading", path_);
      if (n == 0) return;
      take({buffer.data(), static_cast<std::size_t>(n)});
      at += n;
    }
  }
  void sync() const { check(::fsync(fd_), "syncing", path_); }
  void close() {  // a full disk may tell only here
    int fd = std::exchange(fd_, -1);
    check(::close(fd), "closing", path_);
  }

 private:
  std::string path_;
  int fd_;
};

// flock(2), which belongs to the open file and not to the process: the kernel releases it when the
// last descriptor is closed, however the process ends. O_CLOEXEC keeps child processes from holding
// on to it. The file itself is never removed: if it were, one process could lock the removed file
// and another a new one of the same name, and both would believe that they hold the lock.
class FileLock final : public DiskLock {
 public:
  explicit FileLock(const std::string& path)
      : fd_(check(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644), "opening", path)) {}
  ~FileLock() override { ::close(fd_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool take(const std::string& path) const {
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno == EWOULDBLOCK || errno == EINTR) return false;
    log_warning(path, " cannot be locked (", std::generic_category().message(errno),
                "): make sure that no other process writes there");
    return true;
  }
  // For people only, so its failure is ignored: a lock that cannot name its holder is still a lock.
  // A process that reads the file between the two calls finds it empty.
  void sign(const std::string& holder) const {
    if (::ftruncate(fd_, 0) == 0) [[maybe_unused]]
      const ssize_t n = ::pwrite(fd_, holder.data(), holder.size(), 0);
  }

 private:
  int fd_;
};

// A name is data of its folder: without this a crash may undo a rename, although the file's bytes
// are on the disk.
void sync_folder(const std::string& folder) {
  File(folder, O_RDONLY | O_DIRECTORY, "opening the folder").sync();
}

class SystemDisk final : public Disk {
 public:
  std::string read(const std::string& path) const override {
    return File(path, O_RDONLY, "opening").read_all();
  }
  void read_in_pieces(const std::string& path,
                      const std::function<void(std::string_view)>& take) const override {
    File(path, O_RDONLY, "opening").read_in_pieces(take);
  }

  void write_atomically(const std::string& path, std::string_view bytes) override {
    // The order is what makes this atomic. The bytes are synced before the rename: some file
    // systems would otherwise make the rename last before the bytes, and a crash would leave an
    // empty file under the final name. The failpoints between the steps are where tests kill the
    // process (core/base/failpoint.h).
    failpoint("file.begin");
    write_beside(path, bytes, [&](const std::string& beside) {
      failpoint("file.written");
      rename(beside, path);
      failpoint("file.end");
    });
  }

  std::unique_ptr<AppendedFile> append(const std::string& path,
                                       AppendedFile::Existing existing) override {
    const bool there = exists(path);
    auto file = std::make_unique<SystemAppendedFile>(path, existing);
    if (!there) sync_folder(folder_of(path));
    return file;
  }

  void write_new(const std::string& path, std::string_view bytes, SingleWriter) override {
    // A second name for a file is given only if nobody has that name, which one call decides, on
    // shared file systems too. Where a file has one name there is a rename of the same kind.
    failpoint("file.begin");
    write_beside(path, bytes, [&](const std::string& beside) {
      failpoint("file.written");
      const bool linked = ::link(beside.c_str(), path.c_str()) == 0;
      const bool can = linked || (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK);
      if (can ? !linked
              : ::renameat2(AT_FDCWD, beside.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) !=
                    0)
        raise_disk_error(errno, "making the new file", path);
      if (linked) ::unlink(beside.c_str());
      failpoint("file.renamed");
      sync_folder(folder_of(path));
      failpoint("file.end");
    });
  }

  bool exists(const std::string& path) const override {
    std::error_code error;
    bool there = std::filesystem::exists(path, error);
    // A parent that is a file: what was asked for does not exist, which is an answer, not an error.
    if (error.value() != ENOTDIR) check(error, "looking for", path);
    return there;
  }
  std::uint64_t size(const std::string& path) const override {
    struct stat info {};
    check(::stat(path.c_str(), &info), "asking the size of", path);
    return static_cast<std::uint64_t>(info.st_size);
  }
  std::vector<std::string> list(const std::string& folder) const override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator it(folder, error);
    if (error.value() == ENOENT) return names;
    check(error, "listing", folder);
    for (; it != std::filesystem::directory_iterator(); it.increment(error)) {
      names.push_back(it->path().filename().string());
      check(error, "listing", folder);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  void make_folder(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    check(error, "making the folder", path);
  }
  void remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) raise_disk_error(errno, "removing", path);
  }
  void remove_tree(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    check(error, "removing", path);
  }
  void rename(const std::string& from, const std::string& to) override {
    check(::rename(from.c_str(), to.c_str()), str("renaming ", from, " to"), to);
    failpoint("file.renamed");
    sync_folder(folder_of(to));
    if (folder_of(from) != folder_of(to)) sync_folder(folder_of(from));
  }
  void link_files(const std::string& from, const std::string& to,
                  const std::vector<std::string>& names) override {
    failpoint("files.begin");
    make_folder(to);
    for (const std::string& name : names) {
      const std::string old = from + "/" + name, made = to + "/" + name;
      if (::link(old.c_str(), made.c_str()) == 0) continue;
      // Such as a file system without links, or too many of them.
      if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK && errno != EXDEV)
        raise_disk_error(errno, str("linking ", old, " as"), made);
      write_atomically(made, read(old));
    }
    failpoint("files.linked");
    sync_folder(to);
    sync_folder(folder_of(to));
  }
  std::unique_ptr<DiskLock> lock(const std::string& path, const std::string& holder,
                                 Duration patience) override {
    // flock() has no time limit, so the lock is tried again and again. SystemDisk runs on threads
    // that may block; real time is right here, since the other process does not live by our clock.
    constexpr auto kLook = std::chrono::milliseconds(50);
    auto lock = std::make_unique<FileLock>(path);
    for (const TimePoint until = system_clock().now() + patience; !lock->take(path);
         std::this_thread::sleep_for(kLook))
      if (system_clock().now() >= until) throw FailedPreconditionError(read(path));
    lock->sign(holder);
    return lock;
  }

 private:
  // Writes a file beside `path`, durably, and has `publish` give it that name. It lies beside, so
  // that all stays within one file system, and its name differs from that of any other writer
  // (process number and a counter).
  template <typename Publish>
  void write_beside(const std::string& path, std::string_view bytes, Publish publish) {
    const std::string beside = str(path, ".", ::getpid(), "-", next_.fetch_add(1), ".tmp");
    try {
      File file(beside, O_WRONLY | O_CREAT | O_EXCL, "creating");
      file.write(bytes);
      file.sync();
      file.close();  // over NFS a full disk may be reported only here
      publish(beside);
    } catch (...) {
      ::unlink(beside.c_str());
      throw;
    }
  }

  std::atomic<std::uint64_t> next_{0};
};

}  // namespace

void Disk::write_new(const std::string& path, std::string_view bytes, SingleWriter) {
  if (exists(path)) throw AlreadyExistsError(str(path, " is there already"));
  write_atomically(path, bytes);
}

std::unique_ptr<AppendedFile> Disk::append(const std::string& path, AppendedFile::Existing) {
  throw UnimplementedError(str(path, " cannot grow: its store has only whole files"));
}

Disk& system_disk() {
  static SystemDisk disk;  // no state but a counter of temporary names
  return disk;
}

std::string folder_of(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace cairn
