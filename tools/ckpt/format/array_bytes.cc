// Shared by all formats: sizes, and reading bytes by their place.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/disk/disk.h"
#include "tools/ckpt/format/array_file.h"

namespace cairn::tools::ckpt {
namespace {

class FileBytes final : public ByteSource {
 public:
  explicit FileBytes(const std::string& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) raise_disk_error(errno, "opening", path);
    struct stat status {};
    if (::fstat(fd_, &status) != 0) raise_disk_error(errno, "looking at", path);
    size_ = static_cast<std::uint64_t>(status.st_size);
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  ~FileBytes() override {
    if (fd_ >= 0) ::close(fd_);
  }
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::byte* to, std::size_t size) const override {
    for (std::size_t done = 0; done < size;) {
      const ssize_t n = ::pread(fd_, to + done, size - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) raise_disk_error(errno, "reading", path_);
      if (n == 0) throw DataLossError(str(path_, " is cut short at ", offset + done));
      done += static_cast<std::size_t>(n);
    }
  }

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace

ArrayFormat array_format(const std::string& path) {
  if (path.ends_with(".safetensors")) return ArrayFormat::kSafetensors;
  if (path.ends_with(".npz")) return ArrayFormat::kNpz;
  throw InvalidArgumentError(
      str("the name ", path, " tells no format: it must end in .safetensors or .npz"));
}

std::uint64_t ArrayInfo::bytes() const {
  std::uint64_t bytes = dtype_bytes(dtype);
  for (const std::int64_t dim : shape) bytes *= static_cast<std::uint64_t>(dim);
  return bytes;
}

std::string ByteSource::text(std::uint64_t offset, std::uint64_t size) const {
  if (offset > this->size() || size > this->size() - offset)
    throw DataLossError(str("it is cut short: it has ", this->size(), " bytes, and tells of ", size,
                            " at ", offset));
  std::string out(size, '\0');
  read(offset, reinterpret_cast<std::byte*>(out.data()), out.size());
  return out;
}

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  return std::make_unique<FileBytes>(path);
}

ArrayCursor::ArrayCursor(StoredArray array)
    : array_(std::move(array)), source_(open_bytes(array_.path)), sum_(array_.sum_before) {}

void ArrayCursor::read(std::byte* to, std::size_t size) {
  CAIRN_CHECK(at_ + size <= array_.info.bytes(), "reading beyond ", array_.info.name);
  source_->read(array_.offset + at_, to, size);
  at_ += size;
  const auto* bytes = reinterpret_cast<const char*>(to);
  if (array_.sum == StoredArray::Sum::kCrc32)
    sum_ = static_cast<std::uint32_t>(::crc32_z(sum_, reinterpret_cast<const Bytef*>(bytes), size));
  if (array_.sum == StoredArray::Sum::kCrc32c) sum_ = crc32c({bytes, size}, sum_);
  if (at_ == array_.info.bytes() && array_.sum != StoredArray::Sum::kNone &&
      sum_ != array_.checksum)
    throw DataLossError(str("the array \"", array_.info.name, "\" of ", array_.path,
                            " was changed: its checksum does not match its bytes"));
}

}  // namespace cairn::tools::ckpt
