// TensorFlow's bundles: PREFIX.index lists tensors, whose bytes lie in PREFIX.data-00000-of-00001
// and its like. The list is a table in LevelDB's format, whose values are protocol buffers of few
// fields; both are read here, without TensorFlow. Every length is checked before it is used.
//   Source  LevelDB, doc/table_format.md; TensorFlow, core/protobuf/tensor_bundle.proto and
//           core/framework/tensor_shape.proto.
#include <cstdio>
#include <cstring>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "tools/ckpt/format/array_file.h"

namespace cairn::tools::ckpt {
namespace {

constexpr std::uint64_t kTableMagic = 0xdb4775248b80fb57;
constexpr std::uint64_t kFooterBytes = 48, kBlockMax = std::uint64_t{64} << 20;

// Takes numbers and pieces off the front of some bytes.
class Bite {
 public:
  explicit Bite(std::string_view left) : left_(left) {}
  bool empty() const { return left_.empty(); }
  std::string_view take(std::uint64_t size) {
    if (size > left_.size()) throw DataLossError("a field is longer than what holds it");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw DataLossError("a number is malformed");
  }
  std::uint32_t fixed32() {
    std::uint32_t value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::string_view left_;
};

// Hands over each field of a protocol buffer: its number, and its value or bytes.
template <typename Take>
void each_field(std::string_view message, Take take) {
  for (Bite bite(message); !bite.empty();) {
    const std::uint64_t tag = bite.varint();
    switch (tag & 7) {
      case 0: take(tag >> 3, bite.varint(), std::string_view()); break;
      case 1: take(tag >> 3, 0, bite.take(8)); break;
      case 2: take(tag >> 3, 0, bite.take(bite.varint())); break;
      case 5: take(tag >> 3, bite.fixed32(), std::string_view()); break;
      default: throw DataLossError("a field has no type that there is");
    }
  }
}

// LevelDB turns its checksums, so that a checksum of bytes that hold one differs from it.
std::uint32_t unmasked(std::uint32_t masked) {
  const std::uint32_t turned = masked - 0xa282ead8u;
  return turned >> 17 | turned << 15;
}

// The entries of a block, behind which stand its kind of compression and its checksum.
std::string read_block(const ByteSource& source, std::uint64_t offset, std::uint64_t size) {
  if (size > kBlockMax) throw DataLossError(str("a block would be of ", size, " bytes"));
  std::string block = source.text(offset, size + 5);
  std::uint32_t stored;
  std::memcpy(&stored, block.data() + size + 1, sizeof stored);
  if (unmasked(stored) != crc32c(std::string_view(block).substr(0, size + 1)))
    throw DataLossError("the checksum of a block does not match");
  if (block[size] != 0) throw DataLossError("its list is compressed");
  block.resize(size);
  return block;
}

template <typename Take>
void each_entry(std::string_view block, Take take) {
  if (block.size() < 4) throw DataLossError("a block is cut short");
  const std::uint32_t restarts = Bite(block.substr(block.size() - 4)).fixed32();
  if (restarts > (block.size() - 4) / 4) throw DataLossError("a block's restarts are impossible");
  std::string key;
  for (Bite bite(block.substr(0, block.size() - 4 - 4 * restarts)); !bite.empty();) {
    const std::uint64_t shared = bite.varint(), own = bite.varint(), value = bite.varint();
    if (shared > key.size()) throw DataLossError("a key is malformed");
    key.resize(shared);
    key += bite.take(own);
    take(key, bite.take(value));
  }
}

struct TensorEntry {
  std::uint64_t dtype = 0, shard = 0, offset = 0, size = 0;
  std::uint32_t checksum = 0;
  bool sliced = false;
  std::vector<std::int64_t> shape;
};

TensorEntry read_tensor(std::string_view message) {
  TensorEntry entry;
  each_field(message, [&](std::uint64_t field, std::uint64_t number, std::string_view bytes) {
    if (field == 1) entry.dtype = number;
    if (field == 3) entry.shard = number;
    if (field == 4) entry.offset = number;
    if (field == 5) entry.size = number;
    if (field == 6) entry.checksum = static_cast<std::uint32_t>(number);
    if (field == 7) entry.sliced = true;
    if (field != 2) return;
    each_field(bytes, [&](std::uint64_t part, std::uint64_t, std::string_view dim) {
      if (part != 2) return;
      std::uint64_t size = 0;
      each_field(dim, [&](std::uint64_t of, std::uint64_t value, std::string_view) {
        if (of == 1) size = value;
      });
      if (size > (std::uint64_t{1} << 48)) throw DataLossError("a shape is impossible");
      entry.shape.push_back(static_cast<std::int64_t>(size));
    });
  });
  return entry;
}

// TensorFlow's numbers of dtypes.
std::optional<DType> dtype_of(std::uint64_t number) {
  switch (number) {
    case 1: return DType::kFloat32;
    case 3: return DType::kInt32;
    case 4: return DType::kUint8;
    case 9: return DType::kInt64;
    case 10: return DType::kBool;
    case 14: return DType::kBfloat16;
    case 19: return DType::kFloat16;
    default: return std::nullopt;
  }
}

// The path by which TensorFlow 2 finds a variable from its model, less what all of them end in. A
// slot stands below its variable: "dense/kernel/accumulator".
void name_array(std::string name, StoredArray& array) {
  const std::string ending = "/.ATTRIBUTES/VARIABLE_VALUE";
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  const std::string slot = "/.OPTIMIZER_SLOT/";
  const std::size_t at = name.find(slot);
  const std::size_t begin = at + slot.size();
  const std::size_t end = at == std::string::npos ? at : name.find('/', begin);
  if (end != std::string::npos) {
    array.slot_of = name.substr(0, at);
    array.slot = name.substr(end + 1);
    array.optimizer = name.substr(begin, end - begin);
    name.erase(at, end - at);
  }
  array.info.name = std::move(name);
}

std::string data_file(const std::string& prefix, std::uint64_t shard, std::uint64_t shards) {
  char ending[64];
  std::snprintf(ending, sizeof ending, ".data-%05llu-of-%05llu",
                static_cast<unsigned long long>(shard), static_cast<unsigned long long>(shards));
  return prefix + ending;
}

class BundleList {
 public:
  BundleList(const ByteSource& source, std::string prefix)
      : source_(source), prefix_(std::move(prefix)) {}

  ArrayListing read() {
    if (source_.size() < kFooterBytes) throw DataLossError("it is cut short");
    const std::string footer = source_.text(source_.size() - kFooterBytes, kFooterBytes);
    std::uint64_t magic;
    std::memcpy(&magic, footer.data() + 40, sizeof magic);
    if (magic != kTableMagic) throw DataLossError("it does not end as such a file does");
    Bite handles(footer);
    handles.varint();
    handles.varint();  // of the filter, which a bundle does not have
    const std::uint64_t offset = handles.varint(), size = handles.varint();
    each_entry(read_block(source_, offset, size), [&](const std::string&, std::string_view value) {
      Bite handle(value);
      const std::uint64_t at = handle.varint(), bytes = handle.varint();
      each_entry(read_block(source_, at, bytes),
                 [&](const std::string& key, std::string_view entry) { take(key, entry); });
    });
    return std::move(listing_);
  }

 private:
  // The first entry, of an empty key, is the header.
  void take(const std::string& key, std::string_view value) {
    if (!key.empty()) return take_tensor(key, read_tensor(value));
    each_field(value, [&](std::uint64_t field, std::uint64_t number, std::string_view) {
      if (field == 1) shards_ = number;
      if (field == 2 && number != 0) throw DataLossError("its numbers are big-endian");
    });
  }

  // Text says how TensorFlow's objects hang together, and is no variable.
  void take_tensor(const std::string& key, const TensorEntry& entry) {
    constexpr std::uint64_t kText = 7;
    if (entry.dtype == kText) return;
    const auto dtype = dtype_of(entry.dtype);
    if (!dtype.has_value() || entry.sliced)
      throw InvalidArgumentError(str("the tensor \"", key, "\" of ", prefix_,
                                     entry.sliced ? " is cut into slices" : " is ",
                                     entry.sliced ? "" : str("of dtype ", entry.dtype),
                                     ", which Cairn does not read: save it whole, as float32"));
    StoredArray array{.info = {"", *dtype, entry.shape},
                      .path = data_file(prefix_, entry.shard, shards_),
                      .offset = entry.offset,
                      .sum = StoredArray::Sum::kCrc32c,
                      .checksum = unmasked(entry.checksum)};
    name_array(key, array);
    std::uint64_t bytes = dtype_bytes(*dtype);
    for (const std::int64_t dim : entry.shape) {
      const auto of = static_cast<std::uint64_t>(dim);
      if (of != 0 && bytes > entry.size / of) throw DataLossError(str("\"", key, "\" is cut"));
      bytes *= of;
    }
    if (bytes != entry.size)
      throw DataLossError(str("\"", key, "\" has ", entry.size, " bytes and not ", bytes));
    listing_.arrays.push_back(std::move(array));
  }

  const ByteSource& source_;
  std::string prefix_;
  std::uint64_t shards_ = 1;
  ArrayListing listing_;
};

}  // namespace

ArrayListing list_bundle(const ByteSource& source, const std::string& path) {
  try {
    return BundleList(source, path.substr(0, path.rfind(".index"))).read();
  } catch (const DataLossError& error) {
    throw DataLossError(str(path, " is no index of a TensorFlow bundle: ", error.what()));
  }
}

}  // namespace cairn::tools::ckpt
