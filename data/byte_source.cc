// Files as bytes. Reading has an offset of its own and uses pread(), so that seek() is free for
// plain files and nothing is buffered twice: the CSV reader above has its own buffer.
#include "data/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/error.h"

namespace cairn {
namespace {

constexpr std::size_t kKeptBytesMax = 64u << 20;

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

[[noreturn]] void fail_short(const std::string& path, std::uint64_t offset) {
  throw InvalidArgumentError(str("the file ", path, " ends before byte ", offset,
                                 ", where reading was to continue; is it the same file?"));
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

// Gzip through zlib. A gzip file may be several members one after another (RFC 1952, 2.2), as when
// files are appended to each other; they read as one text. There is no index, so going back means
// beginning anew.
class GzipFile final : public ByteSource {
 public:
  explicit GzipFile(const std::string& path) : path_(path), file_(path), in_(256u << 10) {
    begin();
  }
  ~GzipFile() override { inflateEnd(&stream_); }

  std::size_t read(char* out, std::size_t most) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(most, 1u << 30));
    uInt wanted = stream_.avail_out;
    while (stream_.avail_out == wanted && !ended_) step();
    offset_ += wanted - stream_.avail_out;
    return wanted - stream_.avail_out;
  }

  void seek(std::uint64_t offset) override {
    if (offset < offset_) {
      inflateEnd(&stream_);
      file_.seek(0);
      begin();
    }
    std::vector<char> waste(256u << 10);
    while (offset_ < offset)
      if (read(waste.data(), std::min<std::uint64_t>(waste.size(), offset - offset_)) == 0)
        fail_short(path_, offset);
  }

 private:
  void begin() {
    stream_ = {};
    // 15: the largest window; + 16: the gzip header and trailer, with its CRC, are zlib's to check.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK)
      throw ResourceExhaustedError("no memory to decompress " + path_);
    offset_ = 0;
    ended_ = member_ended_ = false;
  }
  // One call of inflate(), or one look behind the end of a member. Z_BUF_ERROR is not an error:
  // zlib could make no progress with what it has, and the next step gives it more.
  void step() {
    if (stream_.avail_in == 0) {
      stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
      stream_.avail_in = static_cast<uInt>(file_.read(in_.data(), in_.size()));
      if (stream_.avail_in == 0 && !member_ended_)
        throw DataLossError(str("the gzip file ", path_, " is cut short after ", offset_,
                                " bytes of text; fetch it again"));
    }
    if (member_ended_) {  // another member may follow; anything else is padding
      ended_ = stream_.avail_in == 0 || *stream_.next_in != 0x1f || inflateReset(&stream_) != Z_OK;
      member_ended_ = ended_;
      return;
    }
    int result = inflate(&stream_, Z_NO_FLUSH);
    member_ended_ = result == Z_STREAM_END;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      throw DataLossError(
          str("the gzip file ", path_, " is damaged after ", offset_,
              " bytes of text: ", stream_.msg != nullptr ? stream_.msg : "bad data"));
  }
  std::string path_;
  PlainFile file_;
  std::vector<char> in_;
  z_stream stream_{};
  std::uint64_t offset_ = 0;
  bool ended_ = false, member_ended_ = false;
};

// A gzip file that was decompressed whole. Epochs rewind and resumed iterators seek; both would
// otherwise decompress the file from its beginning again.
class KeptBytes final : public ByteSource {
 public:
  KeptBytes(std::string path, std::string bytes)
      : path_(std::move(path)), bytes_(std::move(bytes)) {}
  std::size_t read(char* out, std::size_t most) override {
    std::size_t size = std::min(most, bytes_.size() - offset_);
    std::memcpy(out, bytes_.data() + offset_, size);
    offset_ += size;
    return size;
  }
  void seek(std::uint64_t offset) override {
    if (offset > bytes_.size()) fail_short(path_, offset);
    offset_ = offset;
  }

 private:
  std::string path_;
  std::string bytes_;
  std::size_t offset_ = 0;
};

// Decompresses in the hope that the text is small; if it is not, what was read is dropped and the
// file begins anew as a stream.
std::unique_ptr<ByteSource> open_gzip(const std::string& path) {
  auto file = std::make_unique<GzipFile>(path);
  std::string all;
  while (all.size() <= kKeptBytesMax) {
    std::size_t begin = all.size();
    all.resize(begin + (1u << 20));
    std::size_t got = file->read(all.data() + begin, 1u << 20);
    all.resize(begin + got);
    if (got == 0) {
      all.shrink_to_fit();
      return std::make_unique<KeptBytes>(path, std::move(all));
    }
  }
  file->seek(0);
  return file;
}

}  // namespace

bool is_gzip(const std::string& path) {
  unsigned char magic[2] = {};
  return PlainFile(path).read(reinterpret_cast<char*>(magic), 2) == 2 && magic[0] == 0x1f &&
         magic[1] == 0x8b;
}

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  if (is_gzip(path)) return open_gzip(path);
  return std::make_unique<PlainFile>(path);
}

std::string first_bytes(const std::string& path, std::size_t most) {
  std::unique_ptr<ByteSource> bytes;
  if (is_gzip(path))
    bytes = std::make_unique<GzipFile>(path);
  else
    bytes = std::make_unique<PlainFile>(path);
  std::string first(most, '\0');
  std::size_t have = 0;
  while (have < most) {
    const std::size_t got = bytes->read(first.data() + have, most - have);
    if (got == 0) break;
    have += got;
  }
  first.resize(have);
  return first;
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
