// Files as bytes. Reading has an offset of its own and uses pread(), so that seek() is free for
// plain files and nothing is buffered twice: the CSV reader above has its own buffer. Only pipes
// are read by read().
#include "data/file/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "data/file/compressed_file.h"

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

// The name of what cannot be read twice; empty: it is a file, or a folder.
std::string kind_of_pipe(const struct stat& info) {
  if (S_ISFIFO(info.st_mode)) return "a pipe";
  if (S_ISSOCK(info.st_mode)) return "a socket";
  return S_ISCHR(info.st_mode) ? "a device" : "";
}

[[noreturn]] void refuse_pipe(const std::string& path, const std::string& kind) {
  throw InvalidArgumentError(str(path, " is ", kind,
                                 ", which can be read only once, from its beginning to its end: "
                                 "write what it holds to a file, as with `cat ",
                                 path, " > FILE`, and name that"));
}

struct stat stat_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) fail_open(path);
  return info;
}

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

// A file that is not compressed, or a pipe. Of a pipe the first bytes are kept, until they are
// read, for a look at them.
class PlainFile final : public ByteSource {
 public:
  PlainFile(const std::string& path, Pipes pipes) : path_(path) {
    verify_file(path, pipes);
    const bool standard_input = pipes == Pipes::kReadOnce && path == kStandardInput;
    fd_ = standard_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                         : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) fail_open(path);
    struct stat info {};
    is_pipe_ = standard_input || (::fstat(fd_, &info) == 0 && !kind_of_pipe(info).empty());
  }
  ~PlainFile() override { ::close(fd_); }

  bool is_pipe() const { return is_pipe_; }
  // The first bytes of the file. Call it before anything is read.
  std::string peek(std::size_t most) {
    std::string first = first_of(*this, most);
    offset_ = 0;
    if (is_pipe_) peeked_ = first;
    return first;
  }
  std::size_t read(char* out, std::size_t most) override {
    const std::size_t got =
        offset_ < peeked_.size() ? peeked_.copy(out, most, offset_) : read_on(out, most);
    offset_ += got;
    return got;
  }
  // Beyond the end is an error here and not at the next read: the offset is from an iterator's
  // state, and a shorter file is not the one that the state was taken from.
  void seek(std::uint64_t offset) override {
    if (offset == offset_) return;
    if (is_pipe_) refuse_pipe(path_, "a pipe");
    if (offset > 0 && offset > file_bytes(path_)) fail_short(path_, offset);
    offset_ = offset;
  }

 private:
  std::size_t read_on(char* out, std::size_t most) {
    for (;;) {
      const ssize_t got =
          is_pipe_ ? ::read(fd_, out, most) : ::pread(fd_, out, most, static_cast<off_t>(offset_));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_open(path_);
      return static_cast<std::size_t>(got);
    }
  }

  std::string path_;
  int fd_ = -1;
  bool is_pipe_ = false;
  std::string peeked_;
  std::uint64_t offset_ = 0;
};

// The file itself, at its beginning, and how it is compressed.
struct Opened {
  std::unique_ptr<PlainFile> file;
  Packing packing = Packing::kNone;
};

Opened open_file(const std::string& path, Pipes pipes) {
  Opened opened{std::make_unique<PlainFile>(path, pipes)};
  opened.packing = packing_of(path, opened.file->peek(kFirstBytes));
  return opened;
}

}  // namespace

bool is_compressed(const std::string& path) {
  return open_file(path, Pipes::kRefuse).packing != Packing::kNone;
}

std::unique_ptr<ByteSource> open_bytes(const std::string& path, Pipes pipes) {
  auto [file, packing] = open_file(path, pipes);
  if (packing == Packing::kNone) return std::move(file);
  const bool is_pipe = file->is_pipe();
  auto text = make_compressed_file(path, std::move(file), packing);
  return is_pipe ? std::move(text) : keep_if_small(path, std::move(text));
}

std::string first_bytes(const std::string& path, std::size_t most) {
  auto [file, packing] = open_file(path, Pipes::kRefuse);
  if (packing == Packing::kNone) return first_of(*file, most);
  return first_of(*make_compressed_file(path, std::move(file), packing), most);
}

std::unique_ptr<ByteSource> open_plain_bytes(const std::string& path) {
  return std::make_unique<PlainFile>(path, Pipes::kRefuse);
}

void verify_file(const std::string& path, Pipes pipes) {
  if (pipes == Pipes::kReadOnce && path == kStandardInput) return;
  const struct stat info = stat_of(path);
  if (S_ISDIR(info.st_mode))
    throw InvalidArgumentError(str(path, " is a folder; name the files in it"));
  if (const std::string kind = kind_of_pipe(info); pipes == Pipes::kRefuse && !kind.empty())
    refuse_pipe(path, kind);
}

std::uint64_t file_bytes(const std::string& path) {
  verify_file(path, Pipes::kRefuse);
  return static_cast<std::uint64_t>(stat_of(path).st_size);
}

}  // namespace cairn
