#include "storage/row_lookup.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace cairn::storage {
namespace {

// So many rows are announced ahead of the one that is looked up: at most 8 MB of blocks, enough to
// keep a disk busy.
constexpr std::size_t kRowsAhead = 128;

bool same_form(const StoredRows& a, const StoredRows& b) {
  return a.dtype == b.dtype && a.rule == b.rule && a.slots == b.slots && a.dim == b.dim;
}

// The place of a row in its block; offsets.size(): it is not there.
std::size_t place_in(const StoredRows& block, std::int64_t row) {
  const auto offset = static_cast<std::uint64_t>(row - block.first_row);
  if (block.contiguous()) return std::min<std::size_t>(offset, block.offsets.size());
  const auto at = std::lower_bound(block.offsets.begin(), block.offsets.end(), offset);
  if (at == block.offsets.end() || *at != offset) return block.offsets.size();
  return static_cast<std::size_t>(at - block.offsets.begin());
}

}  // namespace

RowLookup::RowLookup(DatabaseReader& reader, std::string variable)
    : reader_(reader), variable_(std::move(variable)) {
  prefix_ = encode(RecordKey{variable_, RecordKind::kRows, 0});
  prefix_.resize(prefix_.size() - sizeof(std::int64_t));
}

// The block that begins at or before the row is the only one that may hold it. False: none does.
// `announced` is its key, if the reader knows that.
bool RowLookup::go_to_block_of(std::int64_t row, const std::string& announced) {
  if (announced.empty()) {
    reader_.seek_for_prev(key_of(row));
    if (!reader_.valid() || !reader_.key().starts_with(prefix_)) return false;
  } else {
    if (!announced.starts_with(prefix_)) return false;
    if (announced == key_) return true;
    reader_.seek_exactly(announced);
  }
  if (reader_.key() == key_) return true;
  key_.clear();  // should the block be damaged
  try {
    decode_rows(reader_.key(), reader_.value(), block_);
  } catch (const DataLossError& error) {
    throw DataLossError(str(reader_.file(), ": ", error.what()));
  }
  key_ = reader_.key();
  return true;
}

void RowLookup::add(std::size_t at, std::vector<StoredRows>& found) const {
  const std::int64_t number = block_.first_row + static_cast<std::int64_t>(block_.offsets[at]);
  if (found.empty() || !same_form(found.back(), block_))
    found.push_back({block_.dtype, block_.rule, block_.slots, block_.dim, number, {}, {}});
  StoredRows& rows = found.back();
  rows.offsets.push_back(static_cast<std::uint64_t>(number - rows.first_row));
  const std::byte* const row = block_.data.data() + at * block_.row_bytes();
  rows.data.insert(rows.data.end(), row, row + block_.row_bytes());
}

void RowLookup::take(std::vector<std::int64_t>& rows, std::vector<StoredRows>& found) {
  // A list of this call's own: what others hold ascends by itself, too.
  std::vector<StoredRows> own;
  std::vector<std::string> keys(kRowsAhead);
  std::size_t left = 0, announced = 0;
  for (std::size_t i = 0; i < rows.size();) {
    announced = std::max(announced, i);
    for (; announced < std::min(rows.size(), i + kRowsAhead); ++announced)
      keys[announced % kRowsAhead] = reader_.will_seek_for_prev(key_of(rows[announced]));
    if (!go_to_block_of(rows[i], keys[i % kRowsAhead])) {
      rows[left++] = rows[i++];
      continue;
    }
    const std::int64_t last =
        block_.first_row +
        (block_.offsets.empty() ? -1 : static_cast<std::int64_t>(block_.offsets.back()));
    do {
      const std::size_t at = rows[i] <= last ? place_in(block_, rows[i]) : block_.offsets.size();
      if (at < block_.offsets.size())
        add(at, own);
      else
        rows[left++] = rows[i];
      ++i;
    } while (i < rows.size() && rows[i] <= last);
  }
  rows.resize(left);
  for (StoredRows& some : own) found.push_back(std::move(some));
}

}  // namespace cairn::storage
