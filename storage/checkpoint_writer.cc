#include "storage/checkpoint_writer.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace cairn::storage {

struct CheckpointWriter::Database {
  std::string name;
  std::unique_ptr<DatabaseWriter> writer;
  RowRange part{};
  StoredRows block{};  // not written yet
  std::uint64_t rows = 0;
};

std::vector<VariableInfo> in_key_order(std::vector<VariableInfo> variables) {
  std::sort(variables.begin(), variables.end(), [](const VariableInfo& a, const VariableInfo& b) {
    return encode(RecordKey{a.name, RecordKind::kTable, 0}) <
           encode(RecordKey{b.name, RecordKind::kTable, 0});
  });
  return variables;
}

CheckpointWriter::CheckpointWriter(RowStore& store, std::string folder,
                                   std::vector<std::string> names) {
  for (std::string& name : names) {
    auto database = std::make_unique<Database>();
    database->writer = store.create(folder + "/" + name);
    database->name = std::move(name);
    databases_.push_back(std::move(database));
  }
}
CheckpointWriter::~CheckpointWriter() = default;

// Whatever part is restored of them finds what was seen of its rows.
void CheckpointWriter::end_variable() {
  for (const auto& database : databases_) {
    flush(*database);
    for (const SeenRows& seen : seen_) {
      if (seen.rows.begin >= database->part.end || seen.rows.end <= database->part.begin) continue;
      const std::string key = encode(RecordKey{variable_.name, RecordKind::kSeen, seen.rows.begin});
      database->writer->put(key, encode(key, seen));
    }
  }
}

std::vector<RowRange> CheckpointWriter::begin(const VariableInfo& variable, std::int64_t updates,
                                              std::vector<SeenRows> seen, BlockForm form) {
  end_variable();
  std::ranges::sort(seen, {}, [](const SeenRows& one) { return one.rows.begin; });
  seen_ = std::move(seen);
  variable_ = variable;
  form_ = row_fields(variable);
  block_form_ = form;
  last_ = -1;
  current_ = 0;
  const std::int64_t rows = row_count(variable);
  const auto count = static_cast<std::int64_t>(databases_.size());
  const std::vector<RowRange> cut =
      split_rows(rows, std::max<std::int64_t>(std::min(rows, count), 1));
  std::vector<RowRange> parts;
  for (std::size_t i = 0; i < databases_.size(); ++i) {
    Database& database = *databases_[i];
    database.part = i < cut.size() ? cut[i] : RowRange{rows, rows};
    database.block = {.dtype = variable.dtype,
                      .rule = variable.rule.kind,
                      .slots = static_cast<std::uint32_t>(variable.slots.size()),
                      .dim = variable.shape.row_elements()};
    if (i >= cut.size()) continue;
    parts.push_back(cut[i]);
    const std::string key = encode(RecordKey{variable.name, RecordKind::kTable, cut[i].begin});
    database.writer->put(
        key, encode(key, TableRecord{variable.name, variable.dtype, variable.shape, variable.rule,
                                     variable.slots, cut[i], updates}));
  }
  return parts;
}

void CheckpointWriter::flush(Database& database) {
  StoredRows& block = database.block;
  if (block.offsets.empty()) return;
  const std::string key = encode(RecordKey{variable_.name, RecordKind::kRows, block.first_row});
  database.writer->put(key, encode(key, block, block_form_));
  database.rows += block.offsets.size();
  block.offsets.clear();
  block.data.clear();
}

void CheckpointWriter::add(Database& database, std::int64_t row, const std::byte* data) {
  StoredRows& block = database.block;
  if (block.data.size() + form_.bytes() > kBlockBytes) flush(database);
  if (block.offsets.empty()) block.first_row = row;
  block.offsets.push_back(static_cast<std::uint64_t>(row - block.first_row));
  block.data.insert(block.data.end(), data, data + form_.bytes());
}

void CheckpointWriter::add(const RowBatch& batch) {
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    const std::int64_t row = batch.rows[i];
    if (row <= last_ || row >= row_count(variable_))
      throw InvalidArgumentError(str("variable \"", variable_.name, "\" has rows 0 to ",
                                     row_count(variable_), ", and row ", row,
                                     " does not follow row ", last_));
    last_ = row;
    while (row >= databases_[current_]->part.end) ++current_;
    add(*databases_[current_], row, batch.data.data() + i * form_.bytes());
  }
}

std::vector<DatabaseInfo> CheckpointWriter::finish() {
  std::vector<DatabaseInfo> infos;
  end_variable();
  for (const auto& database : databases_) {
    std::vector<DatabaseInfo> made = group_by_database(database->writer->finish());
    CAIRN_CHECK(made.size() == 1 && made[0].name == database->name, "a database of ",
                database->name);
    made[0].rows = database->rows;
    infos.push_back(std::move(made[0]));
  }
  return infos;
}

}  // namespace cairn::storage
