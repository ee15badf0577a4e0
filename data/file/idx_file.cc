#include "data/file/idx_file.h"

#include <bit>
#include <cstring>

#include "core/base/error.h"

namespace cairn {
namespace {

// The types by their numbers in the format, and what they are read as.
struct IdxType {
  int number;
  std::size_t bytes;
  DType dtype;
  const char* name;
};
constexpr IdxType kTypes[] = {
    {0x08, 1, DType::kUint8, "uint8"},     {0x09, 1, DType::kInt32, "int8"},
    {0x0B, 2, DType::kInt32, "int16"},     {0x0C, 4, DType::kInt32, "int32"},
    {0x0D, 4, DType::kFloat32, "float32"}, {0x0E, 8, DType::kFloat64, "float64"}};

const IdxType* type_of(int number) {
  for (const IdxType& type : kTypes)
    if (type.number == number) return &type;
  return nullptr;
}

template <typename Unsigned>
Unsigned big_endian(const char* at) {
  Unsigned value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value = static_cast<Unsigned>(value << 8 | static_cast<unsigned char>(at[i]));
  return value;
}

// Stored numbers of type From, in a file's order of bytes, to numbers of type To.
template <typename From, typename Unsigned, typename To>
void convert(const char* from, std::span<To> to) {
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = static_cast<To>(std::bit_cast<From>(big_endian<Unsigned>(from + i * sizeof(From))));
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InvalidArgumentError(str(path, ": ", why));
}

}  // namespace

IdxHead read_idx_head(const std::string& path, const IdxColumn& column) {
  const Shape& shape = column.shape;
  IdxHead head;
  head.bytes = 4 + 4 * static_cast<std::size_t>(1 + shape.rank());
  const std::string bytes = first_bytes(path, head.bytes);
  const IdxType* type =
      bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 ? type_of(bytes[2]) : nullptr;
  if (type == nullptr) refuse(path, "the first 4 bytes are not those of an IDX file");
  const int rank = static_cast<unsigned char>(bytes[3]);
  if (rank != 1 + shape.rank())
    refuse(path, str("the file has ", rank, " dimensions, and column \"", column.name,
                     "\" of shape ", shape.to_string(), " wants ", 1 + shape.rank()));
  if (bytes.size() < head.bytes)
    throw DataLossError(
        str(path, " ends after ", bytes.size(), " bytes, within its head; fetch it again"));
  for (int i = 0; i < shape.rank(); ++i)
    if (const auto size = big_endian<std::uint32_t>(&bytes[8 + 4 * static_cast<std::size_t>(i)]);
        size != shape[i])
      refuse(path, str("dimension ", i, " of each example is ", size, ", and column \"",
                       column.name, "\" is of shape ", shape.to_string()));
  if (type->dtype != column.dtype)
    refuse(path, str("the file holds ", type->name, " (type ", type->number, "), which is read as ",
                     dtype_name(type->dtype), ", and column \"", column.name, "\" is of dtype ",
                     dtype_name(column.dtype)));
  head.count = big_endian<std::uint32_t>(&bytes[4]);
  head.row_bytes = static_cast<std::size_t>(shape.elements()) * type->bytes;
  head.type = type->number;
  const std::uint64_t whole = head.bytes + static_cast<std::uint64_t>(head.count) * head.row_bytes;
  if (!is_compressed(path) && file_bytes(path) != whole)
    throw DataLossError(str(path, " has ", file_bytes(path), " bytes, and by its head ", head.count,
                            " examples of ", head.row_bytes, " bytes make it ", whole,
                            "; fetch it again"));
  return head;
}

IdxFile::IdxFile(std::string path, const IdxColumn& column)
    : path_(std::move(path)),
      column_(column),
      head_(read_idx_head(path_, column)),
      bytes_(open_bytes(path_)) {}

// The size of a compressed file's text is known at its end only.
void IdxFile::verify_end() {
  char more = 0;
  if (bytes_->read(&more, 1) != 0)
    throw DataLossError(str(path_, " goes on behind the ", head_.count, " examples of ",
                            head_.row_bytes, " bytes that its head promises; fetch it again"));
}

Tensor IdxFile::read(std::int64_t begin, std::int64_t rows) {
  Tensor values(column_.dtype, column_.shape.with_front(rows));
  const std::uint64_t from = head_.bytes + static_cast<std::uint64_t>(begin) * head_.row_bytes;
  buffer_.resize(static_cast<std::size_t>(rows) * head_.row_bytes);
  const auto short_at = [&](std::uint64_t at) {
    return DataLossError(str(path_, " ends after ", at, " bytes, and by its head it has ",
                             head_.count, " examples of ", head_.row_bytes,
                             " bytes; fetch it again"));
  };
  try {
    bytes_->seek(from);
  } catch (const InvalidArgumentError&) {
    throw short_at(from);
  }
  for (std::size_t have = 0; have < buffer_.size();) {
    const std::size_t got = bytes_->read(buffer_.data() + have, buffer_.size() - have);
    if (got == 0) throw short_at(from + have);
    have += got;
  }
  if (begin + rows == head_.count) verify_end();
  const char* at = buffer_.data();
  switch (head_.type) {
    case 0x08: std::memcpy(values.mutable_raw(), at, buffer_.size()); break;
    case 0x09: convert<std::int8_t, std::uint8_t>(at, values.mutable_values<std::int32_t>()); break;
    case 0x0B:
      convert<std::int16_t, std::uint16_t>(at, values.mutable_values<std::int32_t>());
      break;
    case 0x0C:
      convert<std::int32_t, std::uint32_t>(at, values.mutable_values<std::int32_t>());
      break;
    case 0x0D: convert<float, std::uint32_t>(at, values.mutable_values<float>()); break;
    default: convert<double, std::uint64_t>(at, values.mutable_values<double>());
  }
  return values;
}

}  // namespace cairn
