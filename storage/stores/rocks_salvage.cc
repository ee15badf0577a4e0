// Damaged databases, file by file and record by record. RocksDB's iterator ends at a block whose
// checksum does not match, so that the first key behind the block is searched for: by steps that
// double, then by halves. Reading blocks without verifying them would save more of them, but
// RocksDB, as Debian builds it, then ends the process at lengths that are impossible.
#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "storage/checkpoint_writer.h"
#include "storage/database_place.h"
#include "storage/row_block.h"
#include "storage/salvage.h"
#include "storage/stores/rocks_status.h"

namespace cairn::storage {
namespace {

rocksdb::Options salvage_options() {
  rocksdb::Options options;
  options.info_log = std::make_shared<NoLog>();
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// A sorted file that may be damaged.
class SortedFile {
 public:
  SortedFile(std::string path, const std::vector<VariableInfo>& variables)
      : path_(std::move(path)), variables_(variables), reader_(salvage_options()) {
    const rocksdb::Status opened = reader_.Open(path_);
    if (!opened.ok()) {
      why_ = str(path_, " cannot be opened: ", opened.ToString());
      return;
    }
    renew_cursor();
    cursor_->SeekToFirst();
    settle();
  }

  bool opened() const { return cursor_ != nullptr; }
  const std::string& path() const { return path_; }
  // Empty: nothing was lost since this was asked last.
  std::string take_why() { return std::exchange(why_, ""); }
  bool valid() const { return cursor_ != nullptr && !ended_; }
  std::string_view key() const { return cursor_->key().ToStringView(); }
  std::string_view value() const { return cursor_->value().ToStringView(); }
  void next() {
    cursor_->Next();
    settle();
  }

 private:
  void renew_cursor() {
    rocksdb::ReadOptions read;
    read.fill_cache = false;
    read.readahead_size = std::size_t{2} << 20;
    cursor_.reset(reader_.NewIterator(read));
  }

  // Moves on from where the cursor is to a record that is sound.
  void settle() {
    for (;;) {
      if (!cursor_->Valid()) {
        if (cursor_->status().ok() || !skip()) {
          ended_ = true;
          return;
        }
        continue;
      }
      if (sound()) {
        last_ = std::string(key());
        return;
      }
      cursor_->Next();
    }
  }

  bool sound() {
    try {
      verify_record(key(), value(), scratch_);
      // Damage in a key may lead back.
      return last_.empty() || std::string_view(last_) < key();
    } catch (const DataLossError& error) {
      why_ = str(path_, ": ", error.what());
      return false;
    }
  }

  // A cursor that has met a damaged block may stay in it, whatever it is asked to seek.
  bool readable_from(const std::string& key) {
    renew_cursor();
    cursor_->Seek(key);
    return cursor_->Valid();
  }

  // Places the cursor behind a block that cannot be read; false: there is nothing behind it.
  bool skip() {
    why_ = str(path_, ": ", cursor_->status().ToString());
    const RecordKey from = last_.empty() ? RecordKey{} : decode_key(last_);
    bool passed = last_.empty();
    for (const VariableInfo& variable : in_key_order(variables_)) {
      const bool same = !last_.empty() && variable.name == from.variable;
      if (!passed && !same) continue;
      passed = true;
      if (!same && readable_from(encode(RecordKey{variable.name, RecordKind::kTable, 0})))
        return true;
      const std::int64_t row = same && from.kind == RecordKind::kRows ? from.row : -1;
      if (skip_in(variable, row)) return true;
    }
    return false;
  }

  bool skip_in(const VariableInfo& variable, std::int64_t row) {
    const std::int64_t rows = row_count(variable);
    const auto key_of = [&](std::int64_t at) {
      return encode(RecordKey{variable.name, RecordKind::kRows, at});
    };
    std::int64_t bad = row;  // nothing can be read from here on
    for (std::int64_t step = 1;; step *= 2) {
      if (bad >= rows - 1) return false;
      const std::int64_t next = step > rows - 1 - bad ? rows - 1 : bad + step;
      if (!readable_from(key_of(next))) {
        // At the end of the file there is no record, and no error either.
        if (cursor_->status().ok()) return find_last(variable, bad, next);
        bad = next;
        continue;
      }
      return narrow(variable, bad, next);
    }
  }
  // Between a row from which nothing can be read and one from which something can.
  bool narrow(const VariableInfo& variable, std::int64_t bad, std::int64_t good) {
    while (good - bad > 1) {
      const std::int64_t middle = bad + (good - bad) / 2;
      (readable_from(encode(RecordKey{variable.name, RecordKind::kRows, middle})) ? good : bad) =
          middle;
    }
    return readable_from(encode(RecordKey{variable.name, RecordKind::kRows, good}));
  }
  // The same where the upper row is behind all that the file has.
  bool find_last(const VariableInfo& variable, std::int64_t bad, std::int64_t behind) {
    while (behind - bad > 1) {
      const std::int64_t middle = bad + (behind - bad) / 2;
      if (readable_from(encode(RecordKey{variable.name, RecordKind::kRows, middle})))
        return narrow(variable, bad, middle);
      (cursor_->status().ok() ? behind : bad) = middle;
    }
    return false;
  }

  std::string path_;
  const std::vector<VariableInfo>& variables_;
  rocksdb::SstFileReader reader_;
  std::unique_ptr<rocksdb::Iterator> cursor_;
  StoredRows scratch_;
  std::string last_, why_;
  bool ended_ = false;
};

// Where reading has come to: behind this row of this variable, the last sound one.
struct Place {
  std::string variable;
  std::int64_t row = 0;
};
// Where a record lies among the rows: tables before them, whatever else there is behind them.
Place place_of(const RecordKey& key) {
  if (key.kind == RecordKind::kRows) return {key.variable, key.row};
  return {key.variable,
          key.kind == RecordKind::kTable ? 0 : std::numeric_limits<std::int64_t>::max()};
}
Place place_behind(std::string_view key, std::string_view value) {
  const RecordKey decoded = decode_key(key);
  if (decoded.kind != RecordKind::kRows) return place_of(decoded);
  const StoredRows rows = decode_rows(key, value);
  return {decoded.variable,
          decoded.row +
              (rows.offsets.empty() ? 0 : static_cast<std::int64_t>(rows.offsets.back()) + 1)};
}

// Goes through the files in the order of their keys, and notes what lies between sound records.
class Salvage {
 public:
  using Take = std::function<void(std::string_view key, std::string_view value)>;
  Salvage(std::vector<VariableInfo> ordered, const Take& take)
      : ordered_(std::move(ordered)), take_(take) {}

  // A file of which nothing can be read. Its rows lie in front of some other file, or behind all.
  void add_lost_file(const std::string& why) {
    lost_files_ += (lost_files_.empty() ? "" : "; ") + why;
  }

  void read(SortedFile& file) {
    for (bool first = true; file.valid(); file.next(), first = false) {
      const std::string why = reason(file.take_why(), first);
      if (!last_.empty() && file.key() <= last_) continue;  // damage has made files overlap
      const RecordKey key = decode_key(file.key());
      if (!why.empty()) add_gap(place_of(key), why);
      if (key.kind == RecordKind::kTable)
        parts_[key.variable].push_back(decode_table(file.key(), file.value()).rows);
      take_(file.key(), file.value());
      at_ = place_behind(file.key(), file.value());
      last_ = std::string(file.key());
    }
    pending_ = file.take_why();
  }

  // A gap that reaches beyond the database's parts, where these are known, is cut to them.
  std::vector<LostRows> finish() {
    if (const std::string why = reason("", true); !why.empty()) add_gap(std::nullopt, why);
    std::vector<LostRows> lost;
    for (const LostRows& one : lost_) {
      const auto parts = parts_.find(one.variable);
      if (parts == parts_.end()) lost.push_back(one);
      if (parts == parts_.end()) continue;
      for (const RowRange& part : parts->second) {
        const std::int64_t begin = std::max(one.begin, part.begin);
        const std::int64_t end = std::min(one.end, part.end);
        if (begin < end) lost.push_back({one.variable, begin, end, one.why});
      }
    }
    return lost;
  }

 private:
  // Why something may be missing in front of a record: empty if nothing is.
  std::string reason(std::string why, bool first_of_file) {
    if (why.empty()) why = std::exchange(pending_, "");
    return why.empty() && first_of_file ? lost_files_ : why;
  }

  // From where reading has come to up to `to`, variable by variable. No place: the end.
  void add_gap(const std::optional<Place>& to, const std::string& why) {
    bool begun = !at_.has_value();
    for (const VariableInfo& variable : ordered_) {
      const bool first = at_.has_value() && variable.name == at_->variable;
      const bool last = to.has_value() && variable.name == to->variable;
      begun = begun || first;
      if (!begun) continue;
      const std::int64_t begin = first ? at_->row : 0;
      const std::int64_t end = last ? std::min(to->row, row_count(variable)) : row_count(variable);
      if (begin < end) lost_.push_back({variable.name, begin, end, why});
      if (last) return;
    }
  }

  std::vector<VariableInfo> ordered_;
  const Take& take_;
  std::string lost_files_, pending_, last_;
  std::optional<Place> at_;
  std::map<std::string, std::vector<RowRange>> parts_;
  std::vector<LostRows> lost_;
};

}  // namespace

std::vector<LostRows> salvage_database(
    const std::string& folder, const DatabaseInfo& database,
    const std::vector<VariableInfo>& variables,
    const std::function<void(std::string_view key, std::string_view value)>& take) {
  Salvage salvage(in_key_order(variables), take);
  std::vector<std::unique_ptr<SortedFile>> files;
  for (const FileInfo& file : database.files) {
    if (!file.name.ends_with(".sst")) continue;
    auto sorted = std::make_unique<SortedFile>(place_of(folder, file.name), variables);
    if (sorted->valid())
      files.push_back(std::move(sorted));
    else
      salvage.add_lost_file(sorted->take_why());
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a->key() < b->key(); });
  for (const auto& file : files) salvage.read(*file);
  return salvage.finish();
}

}  // namespace cairn::storage
