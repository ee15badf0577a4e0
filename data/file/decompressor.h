// Decompressor: gzip and zstd, piece by piece; and how a file is compressed, by its first bytes.
//   Source  RFC 1952, "GZIP file format specification version 4.3"; RFC 8878, "Zstandard
//           Compression and the application/zstd Media Type".
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace cairn {

enum class Packing : std::uint8_t { kNone, kGzip, kZstd };
const char* name_of(Packing packing);  // "gzip"

// So many first bytes are enough to tell; a shorter file has fewer.
inline constexpr std::size_t kFirstBytes = 512;
// How the file is compressed that begins with `first`.
//   Errors  InvalidArgument: in a way that is not read here, or it is an archive or a table of
//           another kind; names it. DataLoss: the file is called .gz or .zst, and its first bytes
//           are nearly those of such a file.
Packing packing_of(const std::string& path, std::string_view first);

// Whether a name ends as those of compressed files do: .gz, .zst, .bz2 and so on.
bool has_compressed_name(std::string_view path);

// Thread: one at a time.
class Decompressor {
 public:
  virtual ~Decompressor() = default;
  // Decodes from the beginning of `in` to [out, end), and moves both past what it has used and
  // made. If neither moves, it needs more input.
  //   Result  what is wrong with the data; empty: nothing.
  virtual std::string decode(std::string_view& in, char*& out, char* end) = 0;
  // Whether the file may end here.
  virtual bool may_end() const = 0;
};
//   Errors  ResourceExhausted: there is no memory for it.
std::unique_ptr<Decompressor> make_decompressor(Packing packing);

}  // namespace cairn
