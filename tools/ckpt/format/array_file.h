// Files of named arrays, as other programs write and read them: safetensors and npz.
//
// The bytes of all arrays lie in a file as they would in memory, row-major and little-endian, so
// that nothing but a list of their places is ever held.
//   Source  safetensors: https://github.com/huggingface/safetensors, "Format". npz: a zip file
//           (PKWARE APPNOTE 6.3.10, with its 64-bit fields) of .npy files (NumPy Enhancement
//           Proposal 1).
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace cairn::tools::ckpt {

enum class ArrayFormat { kSafetensors, kNpz };
// The format that a file's name ends with.
//   Errors  InvalidArgument: it ends with none.
ArrayFormat array_format(const std::string& path);

struct ArrayInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes() const;
  bool operator==(const ArrayInfo&) const = default;
};
using ArrayMetadata = std::map<std::string, std::string>;

// In an npz, metadata is an array of bytes of this name that holds JSON, as safetensors has it in
// its header.
inline constexpr const char* kMetadataArray = "__metadata__";

// InvalidArgument, naming every array that the format cannot express, and why.
void verify_expressible(ArrayFormat format, const std::vector<ArrayInfo>& arrays);

// Writes one file. All sizes are known beforehand, so that arrays are written in any order, each
// from its beginning to its end. Without finish() there is no file.
//   Errors  AlreadyExists: there is such a file. Those of writing.
//   Thread  one; calls block.
//   Cost  a quarter of a megabyte for each array that has begun and not ended.
class ArrayWriter {
 public:
  ArrayWriter(const std::string& path, ArrayFormat format, std::vector<ArrayInfo> arrays,
              const ArrayMetadata& metadata);
  ~ArrayWriter();
  ArrayWriter(const ArrayWriter&) = delete;
  ArrayWriter& operator=(const ArrayWriter&) = delete;

  // The next bytes of an array.
  void append(std::size_t array, const std::byte* bytes, std::size_t size);
  // Makes the file; every array must be complete.
  void finish();

 private:
  struct Region;
  void write(std::uint64_t at, std::string_view bytes);
  void flush(Region& region);
  void lay_out_safetensors(const ArrayMetadata& metadata);
  void lay_out_npz();
  void finish_npz();

  std::string path_, beside_;
  ArrayFormat format_;
  int fd_ = -1;
  std::uint64_t end_ = 0;  // of the last array
  std::vector<Region> regions_;
};

// Bytes that are read by their place: a file's, or a test's.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  //   Errors  DataLoss: they are not all there.
  virtual void read(std::uint64_t offset, std::byte* to, std::size_t size) const = 0;
  std::string text(std::uint64_t offset, std::uint64_t size) const;
};
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

// An array in a file: where its elements lie, and, if the file says one, the checksum of them.
struct StoredArray {
  enum class Sum { kNone, kCrc32, kCrc32c };
  ArrayInfo info;
  std::string path;
  std::uint64_t offset = 0;
  Sum sum = Sum::kNone;
  std::uint32_t sum_before = 0;  // of the bytes before the elements that it covers too
  std::uint32_t checksum = 0;
  // In a bundle: the variable whose slot it is, the slot and the optimizer as TensorFlow names
  // them. Empty: the names do not say that it is one.
  std::string slot_of = "", slot = "", optimizer = "";
};
struct ArrayListing {
  std::vector<StoredArray> arrays;
  ArrayMetadata metadata;
};
// Lists the arrays of a file; `path` is for messages, and for StoredArray.
//   Errors  DataLoss: the bytes are not such a file, or cut short. InvalidArgument: an array that
//           Cairn cannot take, by its name: its dtype, an order of elements, compression.
//   Cost  the list alone is read. Any bytes are listed or refused.
ArrayListing list_safetensors(const ByteSource& source, const std::string& path);
ArrayListing list_npz(const ByteSource& source, const std::string& path);
// The same of PREFIX.index of a bundle, as TensorFlow saves checkpoints: the arrays lie in its data
// files beside it. Names are those of variables, without what every path of TensorFlow 2 ends in,
// and slots are VARIABLE/SLOT; text is left out.
ArrayListing list_bundle(const ByteSource& source, const std::string& path);

// Reads an array from its beginning to its end.
//   Thread  one; calls block.
class ArrayCursor {
 public:
  explicit ArrayCursor(StoredArray array);
  const ArrayInfo& info() const { return array_.info; }
  //   Errors  DataLoss, naming file and array: cut short, or, with its last byte, that the checksum
  //           does not match.
  void read(std::byte* to, std::size_t size);

 private:
  StoredArray array_;
  std::unique_ptr<ByteSource> source_;
  std::uint64_t at_ = 0;
  std::uint32_t sum_ = 0;
};

}  // namespace cairn::tools::ckpt
