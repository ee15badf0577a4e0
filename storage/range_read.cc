#include "storage/range_read.h"

#include "core/base/error.h"

namespace cairn::storage {
namespace {

// All keys of one variable and one kind begin with this; the row comes after it.
std::string key_prefix(const std::string& variable, RecordKind kind) {
  std::string key = encode(RecordKey{variable, kind, 0});
  key.resize(key.size() - sizeof(std::int64_t));
  return key;
}

}  // namespace

void verify_database_name(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw InvalidArgumentError(
        str("'", name, "' is not the name of a database inside a checkpoint's folder"));
}

RangeRead::RangeRead(DatabaseReader& reader, std::string variable, RowRange range)
    : reader_(reader),
      variable_(std::move(variable)),
      range_(range),
      prefix_(key_prefix(variable_, RecordKind::kRows)) {}

std::vector<TableRecord> RangeRead::tables() {
  std::vector<TableRecord> records;
  const std::string prefix = key_prefix(variable_, RecordKind::kTable);
  for (reader_.seek(prefix); reader_.valid() && reader_.key().starts_with(prefix); reader_.next()) {
    records.push_back(decode_table(reader_.key(), reader_.value()));
    const TableRecord& record = records.back();
    hashed_ = hashed_ || record.hashed;
    here_ = here_ || (record.rows.begin < range_.end && range_.begin < record.rows.end);
  }
  return records;
}

bool RangeRead::at_rows() const { return reader_.valid() && reader_.key().starts_with(prefix_); }

bool RangeRead::read(std::vector<StoredRows>& out, std::size_t bytes) {
  if (!here_) return false;
  if (!sought_) {
    sought_ = true;
    // The block that holds the range's first row may begin before it, hence the step back. Blocks
    // of a hashed variable hold rows from all over the part, in the order of their first rows, so
    // any block before the range may hold some of it, and reading begins at the first one.
    const std::string first =
        encode(RecordKey{variable_, RecordKind::kRows, hashed_ ? 0 : range_.begin});
    reader_.seek_for_prev(first);
    if (!at_rows()) reader_.seek(first);
  }
  std::size_t taken = 0;
  for (; at_rows(); reader_.next()) {
    if (decode_key(reader_.key()).row >= range_.end) return false;
    if (taken >= bytes) return true;  // the cursor stays on this block for the next call
    StoredRows rows = decode_rows(reader_.key(), reader_.value());
    taken += reader_.value().size();
    if (!rows.offsets.empty() &&
        rows.first_row + static_cast<std::int64_t>(rows.offsets.back()) >= range_.begin)
      out.push_back(std::move(rows));
  }
  return false;
}

}  // namespace cairn::storage
