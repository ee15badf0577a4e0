#include "storage/range_read.h"

#include <algorithm>

#include "core/base/error.h"
#include "storage/superseded_rows.h"

namespace cairn::storage {
namespace {

// All keys of one variable and one kind begin with this; the row comes after it.
std::string key_prefix(const std::string& variable, RecordKind kind) {
  std::string key = encode(RecordKey{variable, kind, 0});
  key.resize(key.size() - sizeof(std::int64_t));
  return key;
}

}  // namespace

RangeRead::RangeRead(DatabaseReader& reader, std::string variable, RowRange range,
                     const SupersededRows* superseded, std::size_t database)
    : reader_(reader),
      superseded_(superseded),
      database_(database),
      variable_(std::move(variable)),
      range_(range),
      prefix_(key_prefix(variable_, RecordKind::kRows)) {}

// A record knows its own key, and its reader the file.
void RangeRead::damaged(const DataLossError& error) const {
  throw DataLossError(str(reader_.file(), ": ", error.what()));
}

// All records of this kind, one after the other.
template <typename Take>
void RangeRead::each(RecordKind kind, Take take) {
  const std::string prefix = key_prefix(variable_, kind);
  for (reader_.seek(prefix); reader_.valid() && reader_.key().starts_with(prefix); reader_.next()) {
    try {
      take(reader_.key(), reader_.value());
    } catch (const DataLossError& error) {
      damaged(error);
    }
  }
}

std::vector<TableRecord> RangeRead::tables() {
  std::vector<TableRecord> records;
  std::int64_t wanted = 0, saved = 0;  // rows, held or not, of parts that overlap with the range
  each(RecordKind::kTable, [&](std::string_view key, std::string_view value) {
    records.push_back(decode_table(key, value));
  });
  for (const TableRecord& record : records) {
    blocks_overlap_ = blocks_overlap_ || record.blocks_overlap;
    const RowRange common{std::max(record.rows.begin, range_.begin),
                          std::min(record.rows.end, range_.end)};
    if (common.size() <= 0) continue;
    here_ = true;
    wanted += common.size();
    saved += record.rows.size();
  }
  // Ids of hashed rows are spread evenly.
  if (blocks_overlap_ && here_)
    wanted_share_ = static_cast<double>(wanted) / static_cast<double>(saved);
  return records;
}

std::vector<std::int64_t> RangeRead::gone() {
  std::vector<std::int64_t> rows;
  if (!here_) return rows;
  each(RecordKind::kGone, [&](std::string_view key, std::string_view value) {
    const GoneRows block = decode_gone(key, value);
    for (const std::uint64_t offset : block.offsets)
      if (const auto row = block.first_row + static_cast<std::int64_t>(offset);
          row >= range_.begin && row < range_.end)
        rows.push_back(row);
  });
  return rows;
}

std::vector<SeenRows> RangeRead::seen() {
  std::vector<SeenRows> parts;
  if (!here_) return parts;
  each(RecordKind::kSeen, [&](std::string_view key, std::string_view value) {
    SeenRows seen = decode_seen(key, value);
    if (seen.rows.begin < range_.end && seen.rows.end > range_.begin)
      parts.push_back(std::move(seen));
  });
  return parts;
}

// Blocks that overlap come in the order of their first rows, so that any block before the range may
// hold some of it, and reading begins at the first one. Otherwise only the block that holds the
// range's first row may begin before it.
std::string RangeRead::first() const {
  return encode(RecordKey{variable_, RecordKind::kRows, blocks_overlap_ ? 0 : range_.begin});
}

std::uint64_t RangeRead::read_ahead() {
  return reader_.will_read(first(), encode(RecordKey{variable_, RecordKind::kRows, range_.end}));
}

std::uint64_t RangeRead::expected_bytes() {
  if (superseded_ != nullptr && !superseded_->any_counts(database_, range_)) return 0;
  return here_ ? static_cast<std::uint64_t>(static_cast<double>(read_ahead()) * wanted_share_) : 0;
}

// To the block that begins at or before the range, or behind that if it is none of this variable.
void RangeRead::go_to_first() {
  const std::string known = reader_.will_seek_for_prev(first());
  if (known.starts_with(prefix_)) return reader_.seek_exactly(known);
  if (known.empty()) reader_.seek_for_prev(first());
  if (!known.empty() || !at_rows()) reader_.seek(first());
}

bool RangeRead::at_rows() const { return reader_.valid() && reader_.key().starts_with(prefix_); }

bool RangeRead::at_range() { return at_rows() && decode_key(reader_.key()).row < range_.end; }

bool RangeRead::next(StoredRows& rows) {
  if (!here_) return false;
  if (!sought_ && superseded_ != nullptr && !superseded_->any_counts(database_, range_)) {
    here_ = false;
    return false;
  }
  if (sought_) {
    reader_.next();
  } else {
    sought_ = true;
    read_ahead();
    go_to_first();
  }
  for (; at_range(); reader_.next()) {
    try {
      decode_rows(reader_.key(), reader_.value(), rows);
    } catch (const DataLossError& error) {
      damaged(error);
    }
    if (superseded_ != nullptr) superseded_->take_out(database_, rows);
    if (!rows.offsets.empty() &&
        rows.first_row + static_cast<std::int64_t>(rows.offsets.back()) >= range_.begin)
      return true;
  }
  here_ = false;  // and asking again does not move on
  return false;
}

bool RangeRead::read(std::vector<StoredRows>& out, std::size_t bytes) {
  for (std::size_t taken = 0; taken < bytes;) {
    StoredRows rows;
    if (!next(rows)) return false;
    taken += rows.data.size();
    out.push_back(std::move(rows));
  }
  return true;
}

}  // namespace cairn::storage
