// The bytes of a file, decompressed if it is a gzip file (known by its first bytes, not by its
// name).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cairn {

// Thread: one at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Up to `most` bytes to `out`; 0 at the end. DataLoss: the compressed data is damaged or cut
  // short.
  virtual std::size_t read(char* out, std::size_t most) = 0;
  // Goes to byte `offset` of the decompressed file. InvalidArgument: it is shorter.
  virtual void seek(std::uint64_t offset) = 0;
};

// NotFound: no such file. PermissionDenied: it may not be read. Keeps a gzip file of up to 64 MB
// decompressed in memory, where seeking is free; in a larger one it costs decompressing what lies
// before.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);
// The same without a look at the first bytes: never decompressed.
std::unique_ptr<ByteSource> open_plain_bytes(const std::string& path);
// The size of a file as it lies on disk. NotFound: no such file.
std::uint64_t file_bytes(const std::string& path);

}  // namespace cairn
