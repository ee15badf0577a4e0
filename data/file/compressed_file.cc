#include "data/file/compressed_file.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/error.h"

namespace cairn {
namespace {

constexpr std::size_t kKeptBytesMax = 64u << 20;
constexpr std::size_t kReadAtOnce = 256u << 10;

// There is no index, so going back means beginning anew.
class CompressedFile final : public ByteSource {
 public:
  CompressedFile(std::string path, std::unique_ptr<ByteSource> file, Packing packing)
      : path_(std::move(path)),
        file_(std::move(file)),
        packing_(packing),
        decompressor_(make_decompressor(packing)),
        buffer_(kReadAtOnce) {}

  std::size_t read(char* out, std::size_t most) override {
    char* at = out;
    while (at == out && most > 0 && !ended_) {
      const std::size_t before = in_.size();
      if (std::string why = decompressor_->decode(in_, at, out + most); !why.empty())
        throw DataLossError(str("the ", name_of(packing_), " file ", path_, " is damaged at byte ",
                                file_offset_ - in_.size(), ", after ",
                                offset_ + static_cast<std::uint64_t>(at - out),
                                " bytes of text: ", why, "; fetch it again, or compress it anew"));
      if (at == out && in_.size() == before) more();
    }
    const std::string_view text{out, static_cast<std::size_t>(at - out)};
    if (offset_ == 0) verify_text(text);
    offset_ += text.size();
    return text.size();
  }

  void seek(std::uint64_t offset) override {
    if (offset < offset_) begin_anew();
    std::vector<char> waste(offset > offset_ ? kReadAtOnce : 0);
    while (offset_ < offset)
      if (read(waste.data(), std::min<std::uint64_t>(waste.size(), offset - offset_)) == 0)
        fail_short(path_, offset);
  }

 private:
  // An archive would otherwise be read as lines without sense.
  void verify_text(std::string_view text) const {
    if (packing_of(path_ + ", decompressed,", text.substr(0, kFirstBytes)) != Packing::kNone)
      throw InvalidArgumentError(path_ + " is compressed twice; decompress it once");
  }
  // Called when the decompressor has used up what it was given.
  void more() {
    in_ = {buffer_.data(), file_->read(buffer_.data(), buffer_.size())};
    file_offset_ += in_.size();
    if (!in_.empty()) return;
    ended_ = decompressor_->may_end();
    if (!ended_)
      throw DataLossError(str("the ", name_of(packing_), " file ", path_, " is cut short after ",
                              offset_, " bytes of text; fetch it again"));
  }
  void begin_anew() {
    file_->seek(0);
    decompressor_ = make_decompressor(packing_);
    in_ = {};
    file_offset_ = offset_ = 0;
    ended_ = false;
  }

  std::string path_;
  std::unique_ptr<ByteSource> file_;
  Packing packing_;
  std::unique_ptr<Decompressor> decompressor_;
  std::vector<char> buffer_;
  std::string_view in_;            // of buffer_: what is not decompressed yet
  std::uint64_t file_offset_ = 0;  // behind in_
  std::uint64_t offset_ = 0;       // of the text
  bool ended_ = false;
};

// A file that was decompressed whole. Epochs rewind and resumed iterators seek; both would
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

}  // namespace

std::unique_ptr<ByteSource> make_compressed_file(std::string path, std::unique_ptr<ByteSource> file,
                                                 Packing packing) {
  return std::make_unique<CompressedFile>(std::move(path), std::move(file), packing);
}

// Decompresses in the hope that the text is small; if it is not, what was read is dropped and the
// file begins anew as a stream.
std::unique_ptr<ByteSource> keep_if_small(const std::string& path,
                                          std::unique_ptr<ByteSource> text) {
  constexpr std::size_t kAtOnce = 1u << 20;
  std::string all;
  while (all.size() <= kKeptBytesMax) {
    const std::size_t begin = all.size();
    all.resize(begin + kAtOnce);
    const std::size_t got = text->read(all.data() + begin, kAtOnce);
    all.resize(begin + got);
    if (got == 0) {
      all.shrink_to_fit();
      return std::make_unique<KeptBytes>(path, std::move(all));
    }
  }
  text->seek(0);
  return text;
}

void fail_short(const std::string& path, std::uint64_t offset) {
  throw InvalidArgumentError(str("the file ", path, " ends before byte ", offset,
                                 ", where reading was to continue; is it the same file?"));
}

}  // namespace cairn
