// The list in front of a safetensors file. Every number in it is checked before it is used: the
// file may be anybody's.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tools/ckpt/format/array_file.h"
#include "tools/ckpt/format/array_names.h"

namespace cairn::tools::ckpt {
namespace {

constexpr std::uint64_t kHeaderMax = 100'000'000;  // as the format has it

std::uint64_t whole_number(const Json& json) {
  if (!json.is_number_unsigned()) throw DataLossError("a size or an offset is no whole number");
  return json.get<std::uint64_t>();
}

StoredArray read_entry(const std::string& name, const Json& json, const std::string& path,
                       std::uint64_t data_bytes) {
  StoredArray array{.info = {.name = name}, .path = path};
  const auto text = json.at("dtype").get<std::string>();
  const auto dtype = from_safetensors_dtype(text);
  if (!dtype.has_value())
    throw InvalidArgumentError(str("the array \"", name, "\" of ", path, " is of ", text,
                                   ", which Cairn does not have: convert it first"));
  array.info.dtype = *dtype;
  std::uint64_t bytes = dtype_bytes(*dtype);
  for (const Json& dim : json.at("shape")) {
    const std::uint64_t size = whole_number(dim);
    if (size != 0 && bytes > data_bytes / size && bytes != 0)
      throw DataLossError(str("the array \"", name, "\" is larger than the file"));
    bytes *= size;
    array.info.shape.push_back(static_cast<std::int64_t>(std::min<std::uint64_t>(size, INT64_MAX)));
  }
  const std::uint64_t begin = whole_number(json.at("data_offsets").at(0));
  const std::uint64_t end = whole_number(json.at("data_offsets").at(1));
  if (begin > end || end > data_bytes || end - begin != bytes)
    throw DataLossError(str("the array \"", name, "\" has ", bytes, " bytes, and lies from ", begin,
                            " to ", end, " of ", data_bytes));
  array.offset = begin;
  return array;
}

ArrayListing read_list(const ByteSource& source, const std::string& path) {
  const std::string front = source.text(0, 8);
  std::uint64_t size = 0;
  for (std::size_t i = 8; i-- > 0;) size = size << 8 | static_cast<unsigned char>(front[i]);
  if (size > kHeaderMax) throw DataLossError(str("its header would be of ", size, " bytes"));
  const Json json = parse_json(source.text(8, size), "its header");
  const std::uint64_t data = 8 + size;
  ArrayListing listing;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__")
      listing.metadata = entry.get<ArrayMetadata>();
    else
      listing.arrays.push_back(read_entry(name, entry, path, source.size() - data));
  }
  // Arrays share no bytes, and leave none over.
  std::sort(listing.arrays.begin(), listing.arrays.end(),
            [](const StoredArray& a, const StoredArray& b) {
              return std::pair(a.offset, a.info.bytes()) < std::pair(b.offset, b.info.bytes());
            });
  std::uint64_t at = 0;
  for (StoredArray& array : listing.arrays) {
    if (array.offset != at)
      throw DataLossError(str("the array \"", array.info.name, "\" begins at ", array.offset,
                              ", the one before it ends at ", at));
    at += array.info.bytes();
    array.offset += data;
  }
  if (at != source.size() - data)
    throw DataLossError(str(source.size() - data - at, " bytes belong to no array"));
  return listing;
}

}  // namespace

ArrayListing list_safetensors(const ByteSource& source, const std::string& path) {
  try {
    return read_list(source, path);
  } catch (const Json::exception& error) {
    throw DataLossError(str(path, " is no safetensors file: ", error.what()));
  } catch (const DataLossError& error) {
    throw DataLossError(str(path, " is no safetensors file: ", error.what()));
  }
}

}  // namespace cairn::tools::ckpt
