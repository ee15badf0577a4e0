// The bytes of a database's records. Whatever is read may be damaged in any way, so the reader
// checks the checksum first and then trusts nothing all the same: a sum can match by chance, and
// fuzzing makes it match on purpose. Every size is compared with what is left before memory is
// allocated for it.
#include "storage/row_block.h"

#include <bit>
#include <cstring>

#include "core/base/checksum.h"
#include "core/graph/custom_rule.h"
#include "storage/record_bytes.h"

namespace cairn::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are stored as they lie in memory");

// A table whose blocks overlap has a version of its own. Of other tables every release, also those
// that knew it as the version of a hashed variable, reads the blocks of the wanted range alone.
constexpr std::uint8_t kRowsVersion = 1, kEncodedRowsVersion = 2;
// So has one that is whole in a delta, which a release that does not know it would mix with what
// has gone.
constexpr std::uint8_t kTableVersion = 1, kOverlappingTableVersion = 2, kWholeTableVersion = 3;
constexpr std::int64_t kDimMax = std::int64_t{1} << 40;
constexpr std::size_t kRowBytesMax = std::size_t{1} << 46;

// Big-endian in keys, because databases compare keys byte by byte, and only this order makes that
// the order of the numbers.
void put_big_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(value >> shift));
}
std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

}  // namespace

std::string encode(const RecordKey& key) {
  CAIRN_CHECK(key.variable.size() <= 0xffff, "a name of ", key.variable.size(), " bytes");
  std::string out;
  out.reserve(key.variable.size() + 11);
  put_big_endian(out, key.variable.size(), 2);
  out += key.variable;
  out.push_back(static_cast<char>(key.kind));
  put_big_endian(out, static_cast<std::uint64_t>(key.row), 8);
  return out;
}

RecordKey decode_key(std::string_view bytes) {
  const std::size_t name = bytes.size() >= 2 ? big_endian(bytes.substr(0, 2)) : 0;
  if (bytes.size() != name + 11) RecordReader::bad(bytes, "its key has the wrong length");
  const auto kind = static_cast<RecordKind>(bytes[2 + name]);
  const std::uint64_t row = big_endian(bytes.substr(3 + name));
  if (kind < RecordKind::kTable || kind > RecordKind::kSeen || row > INT64_MAX)
    RecordReader::bad(bytes, "its key is malformed");
  return {std::string(bytes.substr(2, name)), kind, static_cast<std::int64_t>(row)};
}

std::string describe_key(std::string_view bytes) {
  const std::size_t name = bytes.size() >= 2 ? big_endian(bytes.substr(0, 2)) : 0;
  if (bytes.size() != name + 11) return str("a key of ", bytes.size(), " bytes");
  return str("variable '", bytes.substr(2, name), "', row ", big_endian(bytes.substr(3 + name)));
}

namespace {

// Row numbers ascend, so a list holds the gaps between them less one, which are small. Only the
// first row is a full number, and that one is in the key.
void write_numbers(RecordWriter& out, const StoredRows& rows) {
  if (rows.contiguous()) return;
  for (std::size_t i = 1; i < rows.offsets.size(); ++i)
    out.varint(rows.offsets[i] - rows.offsets[i - 1] - 1);
}

void write_header(RecordWriter& out, std::uint8_t version, const StoredRows& rows) {
  out.number(version);
  out.number(static_cast<std::uint8_t>(rows.dtype));
  out.number(static_cast<std::uint8_t>(rows.rule));
  out.number(static_cast<std::uint8_t>(rows.contiguous() ? 1 : 0));
  out.number(rows.slots);
  out.number(rows.dim);
  out.number(static_cast<std::uint32_t>(rows.offsets.size()));
}

}  // namespace

std::string encode(std::string_view key, const StoredRows& rows) {
  RecordWriter out;
  out.reserve(rows.data.size() + 2 * rows.offsets.size() + 64);
  write_header(out, kRowsVersion, rows);
  write_numbers(out, rows);
  out.bytes(rows.data.data(), rows.data.size());
  return out.finish(key);
}

// A block that holds what an exact one would is written as ever, so that older releases read it.
std::string encode(std::string_view key, const StoredRows& rows, BlockForm wanted) {
  if (wanted == BlockForm{}) return encode(key, rows);
  if (wanted.slots == SlotForm::kDropped) {
    StoredRows bare = rows;
    drop_slots(bare);
    return encode(key, bare, {wanted.rows, SlotForm::kExact, wanted.compression});
  }
  BlockForm form = form_for(rows, wanted);
  std::string values = encode_values(rows, form);
  if (form.compression == Compression::kZstd) {
    std::string packed;
    if (values.size() <= kCompressedBytesMax) packed = compressed(values);
    if (packed.empty()) form.compression = Compression::kNone;
    if (!packed.empty()) values = std::move(packed);
  }
  if (form == BlockForm{}) return encode(key, rows);
  RecordWriter out;
  out.reserve(values.size() + 2 * rows.offsets.size() + 64);
  write_header(out, kEncodedRowsVersion, rows);
  out.number(static_cast<std::uint8_t>(form.rows));
  out.number(static_cast<std::uint8_t>(form.slots));
  out.number(static_cast<std::uint8_t>(form.compression));
  write_numbers(out, rows);
  out.bytes(reinterpret_cast<const std::byte*>(values.data()), values.size());
  return out.finish(key);
}

StoredRows decode_rows(std::string_view key, std::string_view value) {
  StoredRows rows;
  decode_rows(key, value, rows);
  return rows;
}

namespace {

BlockForm read_form(RecordReader& in, DType dtype) {
  const auto rows = in.number<std::uint8_t>(), slots = in.number<std::uint8_t>(),
             compression = in.number<std::uint8_t>();
  in.want(rows <= static_cast<int>(RowForm::kInt8) &&
              slots <= static_cast<int>(SlotForm::kBfloat16) &&
              compression <= static_cast<int>(Compression::kZstd),
          "it is encoded in a way that this version of Cairn does not know");
  const BlockForm form{static_cast<RowForm>(rows), static_cast<SlotForm>(slots),
                       static_cast<Compression>(compression)};
  in.want(
      dtype == DType::kFloat32 || (form.rows == RowForm::kExact && form.slots == SlotForm::kExact),
      "only rows of float32 are encoded");
  return form;
}

// The sizes are those of the header, whatever the bytes say.
void read_values(RecordReader& in, BlockForm form, StoredRows& rows) {
  const std::string_view bytes = in.take(in.left());
  // It does not overflow: a block has at most 2^16 rows of fewer than 2^46 bytes.
  const std::size_t wanted = encoded_bytes(rows, form);
  if (form.compression == Compression::kNone) {
    in.want(bytes.size() == wanted, "its rows do not fill it");
    return decode_values(bytes, form, rows);
  }
  std::string values;
  in.want(decompress(bytes, wanted, values), "its compressed rows are damaged");
  decode_values(values, form, rows);
}

}  // namespace

void decode_rows(std::string_view key, std::string_view value, StoredRows& rows) {
  RecordReader in(key, value);
  const auto version = in.number<std::uint8_t>();
  in.want(version == kRowsVersion || version == kEncodedRowsVersion,
          "a newer version of Cairn wrote it");
  const auto dtype = in.number<std::uint8_t>();
  in.want(dtype < static_cast<int>(DType::kString), "it has no such dtype");
  rows.dtype = static_cast<DType>(dtype);
  rows.rule = in.rule_kind();
  const bool contiguous = in.number<std::uint8_t>() != 0;
  rows.slots = in.number<std::uint32_t>();
  rows.dim = in.number<std::int64_t>();
  const auto count = in.number<std::uint32_t>();
  rows.first_row = decode_key(key).row;
  in.want(rows.slots < 64 && rows.dim >= 0 && rows.dim < kDimMax && rows.row_bytes() < kRowBytesMax,
          "its sizes are impossible");
  // Each row has a byte at least, unless it is empty: the list below is bounded by this.
  in.want(count <= kBlockBytes, "it claims more rows than a block has bytes");
  const BlockForm form = version == kEncodedRowsVersion ? read_form(in, rows.dtype) : BlockForm{};
  rows.offsets.resize(count);
  if (count > 0) rows.offsets[0] = 0;
  std::uint64_t offset = 0;
  for (std::uint32_t i = 1; i < count; ++i) {
    const std::uint64_t skipped = contiguous ? 0 : in.varint();
    // first_row + offset must stay a valid int64.
    const std::uint64_t room = static_cast<std::uint64_t>(INT64_MAX - rows.first_row) - offset;
    in.want(skipped < room, "a row number is malformed");
    rows.offsets[i] = offset += 1 + skipped;
  }
  read_values(in, form, rows);
}

std::string encode(std::string_view key, const TableRecord& record) {
  RecordWriter out;
  out.number(record.whole            ? kWholeTableVersion
             : record.blocks_overlap ? kOverlappingTableVersion
                                     : kTableVersion);
  out.number(static_cast<std::uint8_t>(record.dtype));
  out.number(static_cast<std::uint8_t>(record.shape.rank()));
  for (const std::int64_t dim : record.shape.dims()) out.number(dim);
  out.number(static_cast<std::uint8_t>(record.rule.kind));
  out.number(static_cast<std::uint8_t>(UpdateRule::kConstants));
  for (const float constant : record.rule.constants) out.number(constant);
  out.number(static_cast<std::uint8_t>(record.slots.size()));
  for (const std::string& slot : record.slots) out.text(slot);
  out.number(record.rows.begin);
  out.number(record.rows.end);
  out.number(record.updates);
  return out.finish(key);
}

std::string encode(std::string_view key, TableRecord record, BlockForm form) {
  if (form.slots == SlotForm::kDropped && !record.slots.empty()) {
    record.rule = {};
    record.slots.clear();
    record.updates = 0;
  }
  return encode(key, record);
}

// More constants than this release knows are read past, so that a rule may gain some.
TableRecord decode_table(std::string_view key, std::string_view value) {
  RecordReader in(key, value);
  TableRecord record;
  record.variable = decode_key(key).variable;
  const auto version = in.number<std::uint8_t>();
  in.want(version >= kTableVersion && version <= kWholeTableVersion,
          "a newer version of Cairn wrote it");
  record.blocks_overlap = version == kOverlappingTableVersion;
  record.whole = version == kWholeTableVersion;
  const auto dtype = in.number<std::uint8_t>();
  in.want(dtype < static_cast<int>(DType::kString), "it has no such dtype");
  record.dtype = static_cast<DType>(dtype);
  std::vector<std::int64_t> dims(in.number<std::uint8_t>());
  for (std::int64_t& dim : dims) dim = in.number<std::int64_t>();
  record.shape = Shape(std::move(dims));
  record.rule.kind = in.rule_kind();
  const auto constants = in.number<std::uint8_t>();
  for (std::uint8_t i = 0; i < constants; ++i) {
    const auto constant = in.number<float>();
    if (i < UpdateRule::kConstants) record.rule.constants[i] = constant;
  }
  record.slots.resize(in.number<std::uint8_t>());
  for (std::string& slot : record.slots) slot = in.text();
  record.rule = with_saved_slots(record.rule, record.slots);
  record.rows = {in.number<std::int64_t>(), in.number<std::int64_t>()};
  record.updates = in.number<std::int64_t>();
  in.want(in.left() == 0 && record.rows.begin <= record.rows.end && record.updates >= 0,
          "its fields are impossible");
  return record;
}

std::int64_t verify_record(std::string_view key, std::string_view value, StoredRows& scratch) {
  switch (decode_key(key).kind) {
    case RecordKind::kTable: decode_table(key, value); return 0;
    case RecordKind::kGone: decode_gone(key, value); return 0;
    case RecordKind::kSeen: decode_seen(key, value); return 0;
    case RecordKind::kRows: break;
  }
  decode_rows(key, value, scratch);
  return scratch.rows();
}

}  // namespace cairn::storage
