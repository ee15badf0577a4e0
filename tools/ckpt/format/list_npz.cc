// The list at the end of a zip file, and the header of each .npy file in it.
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tools/ckpt/format/array_file.h"
#include "tools/ckpt/format/array_names.h"

namespace cairn::tools::ckpt {
namespace {

constexpr std::uint64_t kListMax = std::uint64_t{64} << 20, kMetadataMax = std::uint64_t{64} << 20;

// A number of `bytes` bytes at `at`.
std::uint64_t number(std::string_view text, std::size_t at, std::size_t bytes) {
  if (at > text.size() || bytes > text.size() - at) throw DataLossError("a header is cut short");
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

struct Entry {
  std::string name;
  std::uint64_t size = 0, offset = 0;
  std::uint32_t sum = 0;
  bool stored = false;
};

struct Directory {
  std::uint64_t at = 0, size = 0, entries = 0;
};

// The end record is the last thing but a comment of up to 64 KB.
Directory find_directory(const ByteSource& source) {
  const std::uint64_t tail = std::min<std::uint64_t>(source.size(), 22 + 0xffff + 20);
  const std::string text = source.text(source.size() - tail, tail);
  const std::size_t end = text.rfind("PK\x05\x06");
  if (end == std::string::npos) throw DataLossError("it has no list at its end");
  if (number(text, end + 20, 2) != text.size() - end - 22)
    throw DataLossError("its end is cut short");
  Directory found{number(text, end + 16, 4), number(text, end + 12, 4), number(text, end + 10, 2)};
  if (end >= 20 && text.compare(end - 20, 4, "PK\x06\x07") == 0) {
    const std::string wide = source.text(number(text, end - 20 + 8, 8), 56);
    if (!wide.starts_with("PK\x06\x06")) throw DataLossError("its 64-bit end record is missing");
    found = {number(wide, 48, 8), number(wide, 40, 8), number(wide, 32, 8)};
  }
  if (found.size > kListMax)
    throw DataLossError(str("its list would be of ", found.size, " bytes"));
  return found;
}

// The 64-bit field replaces, in this order, whichever of the others are all ones.
void read_wide(std::string_view extra, std::uint64_t& size, std::uint64_t& packed,
               std::uint64_t& offset) {
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const std::uint64_t id = number(extra, at, 2), bytes = number(extra, at + 2, 2);
    at += 4;
    if (id == 1) {
      std::size_t from = at;
      for (std::uint64_t* field : {&size, &packed, &offset}) {
        if (*field != 0xffffffff) continue;
        *field = number(extra, from, 8);
        from += 8;
      }
      return;
    }
    at += bytes;
  }
}

std::vector<Entry> read_directory(const ByteSource& source) {
  const Directory directory = find_directory(source);
  const std::string text = source.text(directory.at, directory.size);
  std::vector<Entry> entries;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 4, "PK\x01\x02") != 0) throw DataLossError("an entry has no header");
    Entry entry;
    entry.stored = number(text, at + 10, 2) == 0;
    entry.sum = static_cast<std::uint32_t>(number(text, at + 16, 4));
    std::uint64_t packed = number(text, at + 20, 4);
    entry.size = number(text, at + 24, 4);
    const std::uint64_t name = number(text, at + 28, 2), extra = number(text, at + 30, 2),
                        comment = number(text, at + 32, 2);
    entry.offset = number(text, at + 42, 4);
    if (name + extra + comment > text.size() - at - 46) throw DataLossError("a name is cut short");
    entry.name = text.substr(at + 46, name);
    read_wide(std::string_view(text).substr(at + 46 + name, extra), entry.size, packed,
              entry.offset);
    entry.stored = entry.stored && packed == entry.size;
    entries.push_back(std::move(entry));
    at += 46 + name + extra + comment;
  }
  if (entries.size() != directory.entries)
    throw DataLossError(str("it lists ", entries.size(), " files, and says ", directory.entries));
  return entries;
}

// A value of the header's dictionary, which is one of Python: what follows 'key':.
std::string_view value_of(std::string_view header, const std::string& key) {
  const std::size_t at = header.find("'" + key + "':");
  if (at == std::string_view::npos) throw DataLossError(str("its header has no ", key));
  header.remove_prefix(at + key.size() + 3);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

std::vector<std::int64_t> read_shape(std::string_view text) {
  if (!text.starts_with('(') || text.find(')') == std::string_view::npos)
    throw DataLossError("its shape is no tuple");
  std::vector<std::int64_t> shape;
  bool digits = false;
  std::uint64_t dim = 0;
  for (const char c : text.substr(1, text.find(')'))) {
    if (c >= '0' && c <= '9') {
      digits = true;
      dim = dim * 10 + static_cast<std::uint64_t>(c - '0');
      if (dim > (std::uint64_t{1} << 48)) throw DataLossError("its shape is impossible");
    } else if (c == ',' || c == ')') {
      if (digits) shape.push_back(static_cast<std::int64_t>(dim));
      digits = false;
      dim = 0;
    } else if (c != ' ') {
      throw DataLossError("its shape is malformed");
    }
  }
  return shape;
}

// The header of a .npy file and what it says of the array; its size is added to the offset.
void read_npy(const ByteSource& source, const Entry& entry, StoredArray& array) {
  const std::string front = source.text(array.offset, 12);
  if (!front.starts_with("\x93NUMPY")) throw DataLossError("it is no .npy file");
  const bool wide = front[6] != 1;
  const std::uint64_t size = (wide ? 12 + number(front, 8, 4) : 10 + number(front, 8, 2));
  if (size > entry.size || size > 1'000'000) throw DataLossError("its header is cut short");
  const std::string header = source.text(array.offset, size);
  const std::string_view dict = std::string_view(header).substr(wide ? 12 : 10);
  std::string_view descr = value_of(dict, "descr");
  if (!descr.starts_with('\'')) throw DataLossError("its elements have several fields");
  descr.remove_prefix(1);
  const std::string name(descr.substr(0, descr.find('\'')));
  const auto dtype = from_npy_dtype(name);
  if (!dtype.has_value())
    throw InvalidArgumentError(str("the array \"", array.info.name, "\" of ", array.path, " is of ",
                                   name, ", which Cairn does not have: convert it first"));
  array.info.dtype = *dtype;
  array.info.shape = read_shape(value_of(dict, "shape"));
  if (!value_of(dict, "fortran_order").starts_with("False"))
    throw InvalidArgumentError(str("the array \"", array.info.name, "\" of ", array.path,
                                   " lies column by column: save np.ascontiguousarray() of it"));
  std::uint64_t bytes = dtype_bytes(*dtype);
  for (const std::int64_t dim : array.info.shape) {
    const auto of = static_cast<std::uint64_t>(dim);
    if (of != 0 && bytes > entry.size / of) throw DataLossError("its shape is larger than it is");
    bytes *= of;
  }
  if (bytes != entry.size - size)
    throw DataLossError(str("its shape takes ", bytes, " bytes, and it has ", entry.size - size));
  array.offset += size;
  array.sum_before = static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size()));
}

StoredArray read_entry(const ByteSource& source, const Entry& entry, const std::string& path) {
  if (!entry.name.ends_with(".npy"))
    throw InvalidArgumentError(str(path, " holds \"", entry.name, "\", which is no .npy file"));
  StoredArray array{.path = path};
  array.info.name = entry.name.substr(0, entry.name.size() - 4);
  if (!entry.stored)
    throw InvalidArgumentError(str("the array \"", array.info.name, "\" of ", path,
                                   " is compressed: write it with np.savez"));
  const std::string local = source.text(entry.offset, 30);
  if (!local.starts_with("PK\x03\x04")) throw DataLossError("an entry is not where the list says");
  array.offset = entry.offset + 30 + number(local, 26, 2) + number(local, 28, 2);
  if (array.offset > source.size() || entry.size > source.size() - array.offset)
    throw DataLossError(str("\"", entry.name, "\" is cut short"));
  read_npy(source, entry, array);
  array.sum = StoredArray::Sum::kCrc32;
  array.checksum = entry.sum;
  return array;
}

}  // namespace

ArrayListing list_npz(const ByteSource& source, const std::string& path) {
  try {
    ArrayListing listing;
    for (const Entry& entry : read_directory(source)) {
      StoredArray array = read_entry(source, entry, path);
      if (array.info.name != kMetadataArray) {
        listing.arrays.push_back(std::move(array));
        continue;
      }
      if (array.info.bytes() > kMetadataMax) throw DataLossError("its metadata is too long");
      const Json json = parse_json(source.text(array.offset, array.info.bytes()), "its metadata");
      listing.metadata = json.get<ArrayMetadata>();
    }
    return listing;
  } catch (const Json::exception& error) {
    throw DataLossError(str(path, " is no npz file: ", error.what()));
  } catch (const DataLossError& error) {
    throw DataLossError(str(path, " is no npz file: ", error.what()));
  }
}

}  // namespace cairn::tools::ckpt
