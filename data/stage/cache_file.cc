// A cache in a file: groups of elements one after another, then where each begins, then a tail that
// says how many there are.
//
//   magic, fingerprint                                  8 bytes each
//   for each group: length, checksum, encode(Block)     8, 8, length bytes
//   for each group: its first element, its offset       8 bytes each
//   groups, elements, checksum of the table, magic      8 bytes each
//
// The table comes last because it is known last, and a reader begins with the tail. A file takes
// its final name only when it is complete and synced, so one that has the name and does not fit was
// damaged later; its checksums show that.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "data/dataset/block_bytes.h"
#include "data/feature/hash.h"
#include "data/stage/cache_store.h"

namespace cairn {
namespace {

// "CNCACHE1", "CNCTAIL1"
constexpr std::uint64_t kHead = 0x3145484341434e43, kTail = 0x314c494154434e43;
constexpr std::uint64_t kHeadBytes = 16, kTailBytes = 32, kGroupHeadBytes = 16, kEntryBytes = 16;

using Words = std::vector<std::uint64_t>;
std::span<const std::byte> bytes_of(const Words& words) { return std::as_bytes(std::span(words)); }

[[noreturn]] void fail(const std::string& path, const char* what) {
  const int error = errno;
  const std::string message = str("cache(): cannot ", what, " ", path, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) throw NotFoundError(message + "; make its folder first");
  if (error == EACCES || error == EPERM || error == EROFS) throw PermissionDeniedError(message);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    throw ResourceExhaustedError(message + "; make room, or cache to another disk");
  throw UnavailableError(message);
}

// A file descriptor that closes itself. Reads and writes name their offset, so that get() may read
// while put() appends.
class File {
 public:
  File(std::string path, int flags)
      : path_(std::move(path)), fd_(::open(path_.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  bool is_open() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }

  std::uint64_t size() const {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) fail(path_, "read");
    return static_cast<std::uint64_t>(info.st_size);
  }
  // False: the file ends before that.
  bool read(std::uint64_t offset, void* out, std::size_t size) const {
    for (auto* to = static_cast<char*>(out); size > 0;) {
      const ssize_t got = ::pread(fd_, to, size, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(path_, "read");
      if (got == 0) return false;
      to += got;
      offset += static_cast<std::uint64_t>(got);
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t put = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail(path_, "write");
      offset += static_cast<std::uint64_t>(put);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }
  void sync() const {
    if (::fsync(fd_) != 0) fail(path_, "write");
  }

 private:
  std::string path_;
  int fd_;
};

std::string file_name(const std::string& path, std::uint64_t fingerprint) {
  std::array<char, 17> hex;
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(fingerprint));
  return path + "." + hex.data();
}

// Pipelines of one process, and several processes, may write the same cache at once: each writes
// its own file, and the last rename stays. All of them hold the same elements.
std::string partial_name(const std::string& path) {
  static std::atomic<int> made{0};
  return str(path, ".partial.", ::getpid(), ".", made.fetch_add(1));
}

class FileCache final : public CacheStore {
 public:
  FileCache(const CacheSpec& spec, std::shared_ptr<const BlockLayout> layout,
            std::uint64_t fingerprint)
      : CacheStore(spec, std::move(layout)),
        fingerprint_(fingerprint),
        path_(file_name(spec.file, fingerprint)) {
    auto there = std::make_unique<File>(path_, O_RDONLY);
    if (there->is_open()) {
      file_ = std::move(there);
      read_table();
    } else if (errno == ENOENT) {
      begin();
    } else {
      fail(path_, "read");
    }
  }
  // An unfinished file is of no use: it has no table.
  ~FileCache() override {
    if (!complete() && file_) ::unlink(file_->path().c_str());
  }

 private:
  [[noreturn]] void damaged(const char* what) const {
    throw DataLossError(str("cache(): the file ", path_, " is damaged: ", what,
                            "; remove it, and it will be made again"));
  }
  void want(bool good, const char* what) const {
    if (!good) damaged(what);
  }

  void begin() {
    auto made = std::make_unique<File>(partial_name(path_), O_RDWR | O_CREAT | O_TRUNC);
    if (!made->is_open()) fail(made->path(), "write");
    file_ = std::move(made);
    file_->write(0, bytes_of({kHead, fingerprint_}));
    end_ = kHeadBytes;
  }

  void put(Block group) override {
    const std::vector<std::byte> bytes = encode(group);
    file_->write(end_, bytes_of({bytes.size(), checksum(bytes)}));
    file_->write(end_ + kGroupHeadBytes, bytes);
    offsets_.push_back(end_);
    end_ += kGroupHeadBytes + bytes.size();
  }

  // The last group read is kept decoded, since elements are read in order and a group has many.
  // in_memory_ is cleared before the decoding, so that after damage a half-made block is not taken
  // for the group.
  const Block& get(std::size_t group) override {
    if (in_memory_ == group) return block_;
    const std::uint64_t offset = offsets_[group],
                        next = group + 1 < offsets_.size() ? offsets_[group + 1] : end_;
    std::array<std::uint64_t, 2> head{};
    want(file_->read(offset, head.data(), kGroupHeadBytes), "it ends early");
    want(head[0] == next - offset - kGroupHeadBytes, "a group's length is not that of the table");
    std::vector<std::byte> bytes(head[0]);
    want(file_->read(offset + kGroupHeadBytes, bytes.data(), bytes.size()), "it ends early");
    want(checksum(bytes) == head[1], "the checksum of some elements does not fit");
    in_memory_.reset();
    try {
      block_ = decode_block(bytes, layout_);
    } catch (const InvalidArgumentError& error) {
      damaged(error.what());
    }
    const std::int64_t elements =
        (group + 1 < groups() ? starts()[group + 1] : size()) - starts()[group];
    want(block_.size() == elements || !complete(),
         "a group has not as many elements as the table says");
    in_memory_ = group;
    return block_;
  }

  // Table, tail, sync, rename, in that order: the final name never refers to bytes that a crash may
  // take back.
  void seal() override {
    Words table;
    for (std::size_t i = 0; i < groups(); ++i) {
      table.push_back(static_cast<std::uint64_t>(starts()[i]));
      table.push_back(offsets_[i]);
    }
    const std::uint64_t sum = checksum(bytes_of(table));
    file_->write(end_, bytes_of(table));
    file_->write(end_ + groups() * kEntryBytes,
                 bytes_of({groups(), static_cast<std::uint64_t>(size()), sum, kTail}));
    file_->sync();
    if (::rename(file_->path().c_str(), path_.c_str()) != 0) fail(path_, "write");
  }

  // The sizes in the tail are compared with the size of the file before memory for the table is
  // allocated. That offsets and elements ascend is checked once, so get() may subtract neighbours.
  void read_table() {
    const std::uint64_t size = file_->size();
    std::array<std::uint64_t, 2> head{};
    std::array<std::uint64_t, 4> tail{};
    want(size >= kHeadBytes + kTailBytes && file_->read(0, head.data(), kHeadBytes) &&
             file_->read(size - kTailBytes, tail.data(), kTailBytes),
         "it is too short");
    want(head[0] == kHead && tail[3] == kTail, "it is not a cache file of this version");
    want(head[1] == fingerprint_, "it is of another dataset");
    want(tail[0] <= (size - kHeadBytes - kTailBytes) / kEntryBytes &&
             tail[1] <= static_cast<std::uint64_t>(INT64_MAX),
         "its table is impossible");
    end_ = size - kTailBytes - tail[0] * kEntryBytes;
    Words table(tail[0] * 2);
    want(file_->read(end_, table.data(), table.size() * sizeof(std::uint64_t)), "it ends early");
    want(checksum(bytes_of(table)) == tail[2], "the checksum of its table does not fit");
    std::vector<std::int64_t> starts;
    std::uint64_t element = 0, offset = kHeadBytes;
    for (std::size_t i = 0; i < table.size(); i += 2) {
      want(i == 0 ? table[0] == 0 : table[i] > element, "its table does not ascend");
      want(table[i + 1] >= offset && table[i + 1] + kGroupHeadBytes <= end_,
           "its table does not ascend");
      element = table[i];
      offset = table[i + 1] + kGroupHeadBytes;
      starts.push_back(static_cast<std::int64_t>(element));
      offsets_.push_back(table[i + 1]);
    }
    want(table.empty() ? tail[1] == 0 : tail[1] > element, "its table does not ascend");
    set_complete(std::move(starts), static_cast<std::int64_t>(tail[1]));
  }

  std::uint64_t fingerprint_;
  std::string path_;
  std::unique_ptr<File> file_;
  std::vector<std::uint64_t> offsets_;  // by group
  std::uint64_t end_ = 0;               // of the groups
  std::optional<std::size_t> in_memory_;
  Block block_;  // that group
};

}  // namespace

std::unique_ptr<CacheStore> make_file_cache(const CacheSpec& spec,
                                            std::shared_ptr<const BlockLayout> layout,
                                            std::uint64_t fingerprint) {
  return std::make_unique<FileCache>(spec, std::move(layout), fingerprint);
}

}  // namespace cairn
