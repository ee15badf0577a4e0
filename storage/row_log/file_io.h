// FileIo: the seam to the system's reads and writes, many at once. IoQueue is its only user; a test
// puts one that fails between them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace cairn::storage {

enum class FileAccess : std::uint8_t { kRead, kWrite };

struct FileRequest {
  FileAccess access = FileAccess::kRead;
  int descriptor = -1;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;  // must stay until the request has ended
  std::size_t bytes = 0;
  std::uint64_t tag = 0;  // comes back with the result
};

struct FileResult {
  std::uint64_t tag = 0;
  std::int64_t result = 0;  // how many bytes were read or written, or -errno
};

// Thread: one, the thread that makes it.
class FileIo {
 public:
  // All requests must have ended.
  virtual ~FileIo() = default;
  // Begins these requests, which end in any order. When one has ended the eventfd is readable that
  // the maker was given. The caller never has more under way than it named to the maker.
  virtual void begin(std::span<const FileRequest> requests) = 0;
  // Appends the results of requests that have ended since the last call. Never blocks.
  virtual void take(std::vector<FileResult>& results) = 0;
  virtual std::string_view name() const = 0;
};

// By io_uring, which needs no thread. Null if the kernel refuses it: it is too old, a sandbox or
// the sysctl kernel.io_uring_disabled forbids it, or it has no memory left for the rings.
//   under_way_max  the most requests that are under way at once
std::unique_ptr<FileIo> make_uring_io(std::size_t under_way_max, int eventfd);
// By threads that each make one request at a time.
std::unique_ptr<FileIo> make_thread_io(std::size_t threads, int eventfd);

}  // namespace cairn::storage
