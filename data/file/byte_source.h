// The bytes of a file, decompressed if it is a gzip or zstd file (known by its first bytes, not by
// its name).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "data/dataset/pipes.h"

namespace cairn {

// Thread: one at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads up to `most` bytes to `out`. Returns how many; 0 at the end.
  //   Errors  DataLoss: the compressed data is damaged or cut short.
  virtual std::size_t read(char* out, std::size_t most) = 0;
  // Goes to byte `offset` of the decompressed file.
  //   Errors  InvalidArgument: the file is shorter, or is a pipe.
  virtual void seek(std::uint64_t offset) = 0;
};

// Opens a file. A compressed file of up to 64 MB of text is kept in memory decompressed, where
// seeking is free; in a larger one, seeking costs decompressing what lies before.
//   Errors  NotFound: there is no such file. PermissionDenied: it may not be read. InvalidArgument:
//           it is a folder, a pipe that `pipes` refuses, or of a kind that is not read
//           (packing_of()). DataLoss: it is damaged. Unavailable: the system refuses it for another
//           reason.
std::unique_ptr<ByteSource> open_bytes(const std::string& path, Pipes pipes = Pipes::kRefuse);
// The same without a look at the first bytes: never decompressed.
std::unique_ptr<ByteSource> open_plain_bytes(const std::string& path);
// The first bytes of a file, decompressed, without reading much more of it; fewer if it has fewer.
//   Errors  those of open_bytes() and of reading.
std::string first_bytes(const std::string& path, std::size_t most);
// Whether open_bytes() would decompress it.
bool is_compressed(const std::string& path);
// Without opening it: a pipe may have no writer yet.
//   Errors  NotFound: there is no such file. InvalidArgument: it is a folder, or a pipe that
//           `pipes` refuses.
void verify_file(const std::string& path, Pipes pipes);
// The size of a file as it lies on disk.
//   Errors  those of verify_file(), which refuses pipes.
std::uint64_t file_bytes(const std::string& path);

}  // namespace cairn
