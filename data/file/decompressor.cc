#include "data/file/decompressor.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "core/base/error.h"
#include "data/feature/printable.h"

namespace cairn {
namespace {

using namespace std::string_view_literals;

// The formats that are decompressed here. A zstd file may begin with a skippable frame, as pzstd
// writes it.
struct Known {
  Packing packing;
  std::string_view head;  // the first bytes of such a file
  std::size_t enough;     // how many of them tell
  std::string_view ending;
};
constexpr Known kKnown[] = {{Packing::kGzip, "\x1f\x8b\x08"sv, 2, ".gz"sv},
                            {Packing::kZstd, "\x28\xb5\x2f\xfd"sv, 4, ".zst"sv},
                            {Packing::kZstd, "\x50\x2a\x4d\x18"sv, 4, ".zst"sv}};

// Formats that are only recognised, by bytes that hardly any text has at that place.
struct Foreign {
  std::size_t at;
  std::string_view bytes, name, cure, ending;
};
constexpr Foreign kForeign[] = {
    {4, "1AY&SY"sv, "a bzip2 file", "`bunzip2`", ".bz2"},
    {4, "\x17\x72\x45\x38\x50\x90"sv, "a bzip2 file", "`bunzip2`", ".bz2"},
    {0, "\xfd\x37zXZ\0"sv, "an xz file", "`unxz`", ".xz"},
    {0, "PK\x03\x04"sv, "a zip archive", "`unzip`", ".zip"},
    {0, "PK\x05\x06"sv, "a zip archive", "`unzip`", ".zip"},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive", "`7z x`", ".7z"},
    {0, "\x04\x22\x4d\x18"sv, "an lz4 file", "`unlz4`", ".lz4"},
    {0, "\x1f\x9d"sv, "a file of compress", "`gunzip`", ".Z"},
    {257, "ustar"sv, "a tar archive", "`tar -xf`", ".tar"},
    {0, "PAR1\x15"sv, "a Parquet file", "", ".parquet"},
    {0, "Obj\x01"sv, "an Avro file", "", ".avro"}};

// One flipped bit would turn a compressed file into lines of plain text without sense.
bool is_nearly(std::string_view first, std::string_view head) {
  const std::size_t size = std::min(first.size(), head.size());
  std::size_t same = 0;
  for (std::size_t i = 0; i < size; ++i) same += first[i] == head[i] ? 1 : 0;
  return same > 0 && same + 1 >= size;
}

// A gzip file may be several members one after another (RFC 1952, 2.2), as when files are appended
// to each other; they read as one text. Behind the last one, zero bytes up to the end of the file
// are padding, as tapes need it. Anything else would be data that is lost without a word.
class Gzip final : public Decompressor {
 public:
  // 15: the largest window; + 16: the gzip header and trailer, with its CRC, are zlib's to check.
  Gzip() {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK)
      throw ResourceExhaustedError("no memory to decompress a gzip file");
  }
  ~Gzip() override { inflateEnd(&stream_); }

  // Z_BUF_ERROR is not an error: zlib could make no progress with what it has.
  std::string decode(std::string_view& in, char*& out, char* end) override {
    if (ended_ && !begin_member(in)) return complaint(in);
    constexpr std::size_t kMost = 1u << 30;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(std::min(in.size(), kMost));
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min(static_cast<std::size_t>(end - out), kMost));
    const int result = inflate(&stream_, Z_NO_FLUSH);
    in.remove_prefix(
        static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_in) - in.data()));
    out = reinterpret_cast<char*>(stream_.next_out);
    ended_ = result == Z_STREAM_END;
    if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR) return "";
    return stream_.msg != nullptr ? stream_.msg : "bad data";
  }
  bool may_end() const override { return ended_; }

 private:
  // False: there is nothing more, or no member follows.
  bool begin_member(std::string_view& in) {
    const std::size_t zeros = std::min(in.find_first_not_of('\0'), in.size());
    padded_ = padded_ || zeros > 0;
    in.remove_prefix(zeros);
    if (in.empty() || padded_ || in.front() != kKnown[0].head[0]) return false;
    ended_ = false;
    return inflateReset(&stream_) == Z_OK;
  }
  std::string complaint(std::string_view in) const {
    if (in.empty()) return "";
    return str(padded_ ? "zero bytes and then others follow" : "no gzip data follows",
               " where a member of it ends: \"", printable(in.substr(0, 16)), "\"");
  }

  z_stream stream_{};
  bool ended_ = false;   // behind a member
  bool padded_ = false;  // zero bytes have been seen there
};

// A zstd file may be several frames one after another, which read as one text, with frames between
// that are to be skipped (RFC 8878, 3.1). Whatever else follows a frame is an error of zstd's own.
class Zstd final : public Decompressor {
 public:
  Zstd() : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw ResourceExhaustedError("no memory to decompress a zstd file");
  }
  ~Zstd() override { ZSTD_freeDCtx(context_); }

  std::string decode(std::string_view& in, char*& out, char* end) override {
    if (in.empty() && ended_) return "";  // else a frame would be begun
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out, static_cast<std::size_t>(end - out), 0};
    const std::size_t result = ZSTD_decompressStream(context_, &to, &from);
    in.remove_prefix(from.pos);
    out += to.pos;
    if (ZSTD_isError(result) != 0) return ZSTD_getErrorName(result);
    ended_ = result == 0;
    return "";
  }
  bool may_end() const override { return ended_; }

 private:
  ZSTD_DCtx* context_;
  bool ended_ = false;  // behind a frame
};

[[noreturn]] void refuse_foreign(const std::string& path, const Foreign& foreign) {
  const std::string cure = foreign.cure.empty()
                               ? std::string("write its rows as CSV or TFRecords first")
                               : str("unpack it first, as with ", foreign.cure);
  throw InvalidArgumentError(str(path, " is ", foreign.name,
                                 ", and files are read plain, from gzip or from zstd: ", cure));
}

}  // namespace

const char* name_of(Packing packing) {
  switch (packing) {
    case Packing::kGzip: return "gzip";
    case Packing::kZstd: return "zstd";
    default: return "plain";
  }
}

Packing packing_of(const std::string& path, std::string_view first) {
  for (const Known& known : kKnown)
    if (first.starts_with(known.head.substr(0, known.enough))) return known.packing;
  for (const Known& known : kKnown)
    if (path.ends_with(known.ending) && is_nearly(first, known.head))
      throw DataLossError(str(path, " is called ", known.ending, ", and its first bytes, \"",
                              printable(first.substr(0, known.head.size())),
                              "\", are not quite those of ", name_of(known.packing),
                              ": it is damaged; fetch it again"));
  for (const Foreign& foreign : kForeign)
    if (first.size() > foreign.at && first.substr(foreign.at).starts_with(foreign.bytes))
      refuse_foreign(path, foreign);
  return Packing::kNone;
}

bool has_compressed_name(std::string_view path) {
  const auto fits = [&](const auto& each) { return path.ends_with(each.ending); };
  return std::ranges::any_of(kKnown, fits) || std::ranges::any_of(kForeign, fits);
}

std::unique_ptr<Decompressor> make_decompressor(Packing packing) {
  CAIRN_CHECK(packing != Packing::kNone, "a plain file is not decompressed");
  if (packing == Packing::kZstd) return std::make_unique<Zstd>();
  return std::make_unique<Gzip>();
}

}  // namespace cairn
