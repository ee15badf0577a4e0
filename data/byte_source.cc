// Files as bytes. Reading has an offset of its own and uses pread(), so that seek() is free for
// plain files and nothing is buffered twice: the CSV reader above has its own buffer.
#include "data/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "data/compressed_file.h"

namespace cairn {
namespace {

// Codes by what the reader of the message can do: mend the path, mend the rights, or try again (a
// network file system that is away).
[[noreturn]] void fail_open(const std::string& path) {
  int error = errno;
  std::string message = str("cannot read the file ", path, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR)
    throw NotFoundError(message + "; check the path, and that this machine sees it");
  if (error == EACCES || error == EPERM) throw PermissionDeniedError(message);
  throw UnavailableError(message);
}

class PlainFile final : public ByteSource {
 public:
  explicit PlainFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat info {};
    if (fd_ < 0) fail_open(path);
    if (::fstat(fd_, &info) == 0 && S_ISDIR(info.st_mode)) {
      ::close(fd_);
      throw InvalidArgumentError(str(path, " is a folder; name the files in it"));
    }
  }
  ~PlainFile() override { ::close(fd_); }
  std::size_t read(char* out, std::size_t most) override {
    for (;;) {
      ssize_t got = ::pread(fd_, out, most, static_cast<off_t>(offset_));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_open(path_);
      offset_ += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
  }
  // Beyond the end is an error here and not at the next read: the offset is from an iterator's
  // state, and a shorter file is not the one that the state was taken from.
  void seek(std::uint64_t offset) override {
    if (offset > 0 && offset > file_bytes(path_)) fail_short(path_, offset);
    offset_ = offset;
  }

 private:
  std::string path_;
  int fd_;
  std::uint64_t offset_ = 0;
};

std::string first_of(ByteSource& bytes, std::size_t most) {
  std::string first(most, '\0');
  std::size_t have = 0;
  while (have < most) {
    const std::size_t got = bytes.read(first.data() + have, most - have);
    if (got == 0) break;
    have += got;
  }
  first.resize(have);
  return first;
}

// The file itself, at its beginning, and how it is compressed.
struct Opened {
  std::unique_ptr<ByteSource> file;
  Packing packing = Packing::kNone;
};

Opened open_file(const std::string& path) {
  Opened opened{std::make_unique<PlainFile>(path)};
  opened.packing = packing_of(path, first_of(*opened.file, kFirstBytes));
  opened.file->seek(0);
  return opened;
}

// The text of the file, read from its beginning each time.
std::unique_ptr<ByteSource> stream_of(const std::string& path) {
  auto [file, packing] = open_file(path);
  if (packing == Packing::kNone) return std::move(file);
  return make_compressed_file(path, std::move(file), packing);
}

}  // namespace

bool is_compressed(const std::string& path) { return open_file(path).packing != Packing::kNone; }

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  auto [file, packing] = open_file(path);
  if (packing == Packing::kNone) return std::move(file);
  return keep_if_small(path, make_compressed_file(path, std::move(file), packing));
}

std::string first_bytes(const std::string& path, std::size_t most) {
  return first_of(*stream_of(path), most);
}

std::unique_ptr<ByteSource> open_plain_bytes(const std::string& path) {
  return std::make_unique<PlainFile>(path);
}

std::uint64_t file_bytes(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) fail_open(path);
  return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace cairn
