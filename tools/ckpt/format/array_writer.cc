// Files of arrays, written by place. A safetensors file has its list in front; a zip file has a
// header before each array and the list at its end, with checksums that are known only then.
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "tools/ckpt/format/array_file.h"
#include "tools/ckpt/format/array_names.h"

namespace cairn::tools::ckpt {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

std::string npy_header(const ArrayInfo& info) {
  std::string shape;
  for (const std::int64_t dim : info.shape) shape += str(dim, ", ");
  if (info.shape.size() > 1) shape.resize(shape.size() - 2);  // (3,) but (3, 4)
  if (info.shape.size() == 1) shape.pop_back();
  std::string text = str("{'descr': '", npy_dtype(info.dtype),
                         "', 'fortran_order': False, 'shape': (", shape, "), }");
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string out = "\x93NUMPY";
  out += std::string("\x01\x00", 2);
  put(out, text.size(), 2);
  return out + text;
}

// The sizes stand in the 64-bit field behind the name, whatever they are.
std::string local_header(const std::string& name, std::uint64_t size, std::uint32_t sum) {
  std::string out;
  put(out, 0x04034b50, 4);
  put(out, 45, 2);     // the version that knows 64-bit fields
  put(out, 0x800, 2);  // the name is UTF-8
  put(out, 0, 2);      // stored as it is
  put(out, 0, 2);      // midnight,
  put(out, 0x21, 2);   // 1 January 1980: a file depends on what it holds alone
  put(out, sum, 4);
  put(out, 0xffffffff, 4);
  put(out, 0xffffffff, 4);
  put(out, name.size(), 2);
  put(out, 20, 2);
  out += name;
  put(out, 1, 2);
  put(out, 16, 2);
  put(out, size, 8);
  put(out, size, 8);
  return out;
}

std::string central_header(const std::string& name, std::uint64_t size, std::uint32_t sum,
                           std::uint64_t offset) {
  std::string out;
  put(out, 0x02014b50, 4);
  put(out, 45, 2);
  const std::string local = local_header(name, size, sum);
  out += local.substr(4, 24);  // up to the sizes and the name's length
  put(out, 28, 2);
  put(out, 0, 2);  // no comment,
  put(out, 0, 2);  // the first disk,
  put(out, 0, 2);
  put(out, 0, 4);  // and no attributes
  put(out, 0xffffffff, 4);
  out += name;
  put(out, 1, 2);
  put(out, 24, 2);
  put(out, size, 8);
  put(out, size, 8);
  put(out, offset, 8);
  return out;
}

std::string zip_end(std::uint64_t entries, std::uint64_t at, std::uint64_t size) {
  std::string out;
  put(out, 0x06064b50, 4);
  put(out, 44, 8);
  put(out, 45, 2);
  put(out, 45, 2);
  put(out, 0, 4);
  put(out, 0, 4);
  put(out, entries, 8);
  put(out, entries, 8);
  put(out, size, 8);
  put(out, at, 8);
  put(out, 0x07064b50, 4);
  put(out, 0, 4);
  put(out, at + size, 8);
  put(out, 1, 4);
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, 0xffff, 2);
  put(out, 0xffff, 2);
  put(out, 0xffffffff, 4);
  put(out, 0xffffffff, 4);
  put(out, 0, 2);
  return out;
}

}  // namespace

struct ArrayWriter::Region {
  ArrayInfo info;
  std::string header;           // before the elements, and part of the checksum: .npy's
  std::uint64_t header_at = 0;  // of the zip entry
  std::uint64_t at = 0;         // of the elements
  std::uint64_t appended = 0, written = 0;
  std::uint32_t sum = 0;
  std::string buffer;
  std::string entry() const { return info.name + ".npy"; }
  std::uint64_t size() const { return header.size() + info.bytes(); }
};

ArrayWriter::ArrayWriter(const std::string& path, ArrayFormat format, std::vector<ArrayInfo> arrays,
                         const ArrayMetadata& metadata)
    : path_(path), beside_(str(path, ".", ::getpid(), ".tmp")), format_(format) {
  verify_expressible(format, arrays);
  if (system_disk().exists(path)) throw AlreadyExistsError(str(path, " exists already"));
  for (ArrayInfo& info : arrays) regions_.push_back({std::move(info)});
  std::string text;
  if (format == ArrayFormat::kNpz && !metadata.empty()) {
    text = json_text(Json(metadata));
    regions_.push_back({{kMetadataArray, DType::kUint8, {static_cast<std::int64_t>(text.size())}}});
  }
  fd_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0) raise_disk_error(errno, "creating", beside_);
  if (format == ArrayFormat::kSafetensors)
    lay_out_safetensors(metadata);
  else
    lay_out_npz();
  if (!text.empty())
    append(regions_.size() - 1, reinterpret_cast<const std::byte*>(text.data()), text.size());
}

ArrayWriter::~ArrayWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(beside_.c_str());
}

void ArrayWriter::write(std::uint64_t at, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) raise_disk_error(errno, "writing", beside_);
    bytes.remove_prefix(static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
}

void ArrayWriter::lay_out_safetensors(const ArrayMetadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (Region& region : regions_) {
    const std::uint64_t end = at + region.info.bytes();
    header[region.info.name] = {{"dtype", safetensors_dtype(region.info.dtype)},
                                {"shape", region.info.shape},
                                {"data_offsets", {at, end}}};
    region.at = at;
    at = end;
  }
  std::string text = json_text(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string front;
  put(front, text.size(), 8);
  write(0, front + text);
  for (Region& region : regions_) region.at += front.size() + text.size();
}

void ArrayWriter::lay_out_npz() {
  for (Region& region : regions_) {
    region.header = npy_header(region.info);
    region.sum = static_cast<std::uint32_t>(
        ::crc32_z(0, reinterpret_cast<const Bytef*>(region.header.data()), region.header.size()));
    region.header_at = end_;
    region.at = end_ + local_header(region.entry(), 0, 0).size() + region.header.size();
    end_ = region.at + region.info.bytes();
  }
}

void ArrayWriter::append(std::size_t array, const std::byte* bytes, std::size_t size) {
  Region& region = regions_.at(array);
  region.appended += size;
  CAIRN_CHECK(region.appended <= region.info.bytes(), "too many bytes of ", region.info.name);
  region.buffer.append(reinterpret_cast<const char*>(bytes), size);
  if (region.buffer.size() >= kBufferBytes || region.appended == region.info.bytes()) flush(region);
}

void ArrayWriter::flush(Region& region) {
  write(region.at + region.written, region.buffer);
  if (format_ == ArrayFormat::kNpz)
    region.sum = static_cast<std::uint32_t>(::crc32_z(
        region.sum, reinterpret_cast<const Bytef*>(region.buffer.data()), region.buffer.size()));
  region.written += region.buffer.size();
  if (region.written == region.info.bytes())
    std::string().swap(region.buffer);
  else
    region.buffer.clear();
}

void ArrayWriter::finish_npz() {
  std::string central;
  for (const Region& region : regions_) {
    write(region.header_at,
          local_header(region.entry(), region.size(), region.sum) + region.header);
    central += central_header(region.entry(), region.size(), region.sum, region.header_at);
  }
  write(end_, central + zip_end(regions_.size(), end_, central.size()));
}

void ArrayWriter::finish() {
  for (const Region& region : regions_)
    CAIRN_CHECK(region.written == region.info.bytes(), region.info.name, " is not complete");
  if (format_ == ArrayFormat::kNpz) finish_npz();
  if (::fsync(fd_) != 0) raise_disk_error(errno, "syncing", beside_);
  if (::close(std::exchange(fd_, -1)) != 0) raise_disk_error(errno, "closing", beside_);
  system_disk().rename(beside_, path_);
}

}  // namespace cairn::tools::ckpt
