#include "ps/server/sorted_runs.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/error.h"

namespace cairn::ps {

SortedRuns::OfTable& SortedRuns::of(const storage::TableRecord& table,
                                    const storage::StoredRows& layout) {
  for (OfTable& known : tables_)
    if (known.table.variable == table.variable && known.table.rows.begin == table.rows.begin)
      return known;
  tables_.push_back({table, layout, {}, {}});
  // The shard's database says it, before all runs: they are not to supersede one another.
  tables_.back().table.whole = false;
  tables_.back().layout.offsets.clear();
  tables_.back().layout.data.clear();
  return tables_.back();
}

void SortedRuns::keep(std::vector<std::byte> rows) {
  bytes_ += rows.size();
  kept_.push_back(std::move(rows));
  if (bytes_ >= run_bytes_) end_run();
}

void SortedRuns::add(const storage::TableRecord& table, storage::StoredRows rows,
                     std::span<const std::int64_t> gone) {
  OfTable& to = of(table, rows);
  to.gone.insert(to.gone.end(), gone.begin(), gone.end());
  const std::size_t row_bytes = rows.row_bytes();
  for (std::size_t i = 0; i < rows.offsets.size(); ++i)
    to.rows.push_back({rows.first_row + static_cast<std::int64_t>(rows.offsets[i]),
                       rows.data.data() + i * row_bytes});
  keep(std::move(rows.data));
}

void SortedRuns::add(const storage::TableRecord& table, const storage::StoredRows& layout,
                     std::span<const std::uint64_t> keys, std::vector<std::byte> rows) {
  OfTable& to = of(table, layout);
  const std::size_t row_bytes = layout.row_bytes();
  CAIRN_CHECK(rows.size() == keys.size() * row_bytes, keys.size(), " rows of ", row_bytes,
              " bytes in ", rows.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    to.rows.push_back(
        {table.rows.begin + static_cast<std::int64_t>(keys[i]), rows.data() + i * row_bytes});
  keep(std::move(rows));
}

void SortedRuns::write_rows(OfTable& of, storage::DatabaseWriter& writer,
                            SavedDatabase& saved) const {
  std::ranges::sort(of.rows, {}, &Row::number);
  // A checkpoint that nobody could read is not written.
  const auto twice = std::ranges::adjacent_find(of.rows, {}, &Row::number);
  CAIRN_CHECK(twice == of.rows.end(), "row ", twice->number, " of '", of.table.variable,
              "' is in the checkpoint twice");
  const std::size_t row_bytes = of.layout.row_bytes();
  const std::size_t block =
      std::max<std::size_t>(1, storage::kBlockBytes / std::max<std::size_t>(row_bytes, 1));
  storage::StoredRows rows = of.layout;
  for (std::size_t begin = 0; begin < of.rows.size(); begin += block) {
    const std::size_t end = std::min(of.rows.size(), begin + block);
    rows.first_row = of.rows[begin].number;
    rows.offsets.clear();
    rows.data.resize((end - begin) * row_bytes);
    for (std::size_t i = begin; i < end; ++i) {
      rows.offsets.push_back(static_cast<std::uint64_t>(of.rows[i].number - rows.first_row));
      std::copy_n(of.rows[i].saved, row_bytes, rows.data.data() + (i - begin) * row_bytes);
    }
    const std::string key =
        storage::encode({of.table.variable, storage::RecordKind::kRows, rows.first_row});
    const std::string value = storage::encode(key, rows, encoding_.form_of(of.table.variable));
    writer.put(key, value);
    saved.bytes += value.size();
  }
  saved.rows += of.rows.size();
}

void SortedRuns::write_gone(const OfTable& of, storage::DatabaseWriter& writer,
                            SavedDatabase& saved) {
  for (std::size_t begin = 0; begin < of.gone.size(); begin += storage::kGoneRowsMax) {
    const std::size_t end = std::min(of.gone.size(), begin + storage::kGoneRowsMax);
    storage::GoneRows rows{of.gone[begin], {}};
    for (std::size_t i = begin; i < end; ++i)
      rows.offsets.push_back(static_cast<std::uint64_t>(of.gone[i] - rows.first_row));
    const std::string key =
        storage::encode({of.table.variable, storage::RecordKind::kGone, rows.first_row});
    const std::string value = storage::encode(key, rows);
    writer.put(key, value);
    saved.bytes += value.size();
  }
}

// In the order of storage's keys: shorter names first, the table records of a variable before its
// rows.
void SortedRuns::end_run() {
  if (tables_.empty()) return;
  const auto by_key = [](const OfTable& a, const OfTable& b) {
    const std::string &x = a.table.variable, &y = b.table.variable;
    return std::tuple(x.size(), std::string_view(x), a.table.rows.begin) <
           std::tuple(y.size(), std::string_view(y), b.table.rows.begin);
  };
  std::ranges::sort(tables_, by_key);
  SavedDatabase saved;
  const auto writer = store_.create(str(path_, "-run-", saved_.size()));
  for (auto first = tables_.begin(); first != tables_.end();) {
    const auto last = std::find_if(first, tables_.end(), [&](const OfTable& other) {
      return other.table.variable != first->table.variable;
    });
    for (auto part = first; part != last; ++part) {
      const std::string key = storage::encode(
          {part->table.variable, storage::RecordKind::kTable, part->table.rows.begin});
      writer->put(key, storage::encode(key, part->table, encoding_.form_of(part->table.variable)));
    }
    for (auto part = first; part != last; ++part) write_rows(*part, *writer, saved);
    for (auto part = first; part != last; ++part) write_gone(*part, *writer, saved);
    first = last;
  }
  saved.files = writer->finish();
  saved_.push_back(std::move(saved));
  tables_.clear();
  kept_.clear();
  bytes_ = 0;
}

std::vector<SavedDatabase> SortedRuns::finish() {
  end_run();
  return std::move(saved_);
}

}  // namespace cairn::ps
