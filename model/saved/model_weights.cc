#include "model/saved/model_weights.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/base/clock.h"
#include "storage/checkpoint_folder.h"
#include "storage/database_place.h"
#include "storage/manifest.h"
#include "storage/range_read.h"
#include "storage/row_block.h"
#include "storage/row_encoding.h"
#include "storage/superseded_rows.h"

namespace cairn {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

// The variables' places in the order of their keys: shorter names first.
std::vector<std::size_t> key_order(const std::vector<VariableSpec>& variables) {
  std::vector<std::size_t> order(variables.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const std::string& name = variables[i].name;
    return std::tuple(name.size(), std::string_view(name));
  });
  return order;
}

// The checkpoint's entry of the variable, without the optimizer's slots.
storage::VariableInfo info_without_slots(const storage::Manifest& manifest,
                                         const VariableSpec& wanted, const std::string& from) {
  const auto found =
      std::ranges::find(manifest.variables, wanted.name, &storage::VariableInfo::name);
  if (found == manifest.variables.end() || found->dtype != wanted.dtype ||
      found->shape != wanted.shape)
    throw FailedPreconditionError(
        str("the checkpoint ", from, " has no variable \"", wanted.name, "\" of ",
            TensorType{wanted.dtype, wanted.shape}.to_string(),
            ", which the model reads: name a checkpoint of the strategy that it is traced in"));
  storage::VariableInfo info = *found;
  info.rule = {};
  info.slots.clear();
  // Rows are decoded as they are read, and written as they are.
  info.row_form = storage::RowForm::kExact;
  info.slot_form = storage::SlotForm::kExact;
  return info;
}

// A database that lies beside its checkpoint goes into the model's folder.
std::string inner_name(const storage::DatabaseInfo& database) {
  const std::string folder = storage::rows_folder_of(database.name);
  if (folder.empty()) return database.name;
  return folder + "." + database.name.substr(database.name.rfind('/') + 1);
}

// Copies one database of a checkpoint; made at its first record, since it may have none.
class DatabaseCopy {
 public:
  DatabaseCopy(storage::RowStore& store, const std::string& from, std::string to)
      : store_(store), reader_(store.open(from)), to_(std::move(to)) {}

  // `number` is the database's among those of its checkpoint. Returns how many rows there are.
  std::int64_t copy(const VariableSpec& variable, const storage::SupersededRows& superseded,
                    std::size_t number) {
    storage::RangeRead range(*reader_, variable.name, {0, variable.rows()}, &superseded, number);
    const auto tables = range.tables();
    if (tables.empty()) return 0;
    for (storage::TableRecord table : tables) {
      table.rule = {};
      table.slots.clear();
      table.updates = 0;
      table.whole = false;  // what it superseded is not copied
      put({variable.name, storage::RecordKind::kTable, table.rows.begin}, table);
    }
    std::int64_t rows = 0;
    for (bool more = true; more;) {
      std::vector<storage::StoredRows> blocks;
      more = range.read(blocks, kReadBytes);
      for (storage::StoredRows& block : blocks) {
        rows += block.rows();
        storage::drop_slots(block);
        put({variable.name, storage::RecordKind::kRows, block.first_row}, block);
      }
    }
    rows_ += rows;
    return rows;
  }
  // Nothing if there was no record.
  std::vector<storage::DatabaseInfo> finish() {
    if (!writer_) return {};
    std::vector<storage::DatabaseInfo> made = storage::group_by_database(writer_->finish());
    made.at(0).rows = static_cast<std::uint64_t>(rows_);
    return made;
  }

 private:
  template <typename Record>
  void put(const storage::RecordKey& at, const Record& record) {
    if (!writer_) writer_ = store_.create(to_);
    const std::string key = storage::encode(at);
    writer_->put(key, storage::encode(key, record));
  }

  storage::RowStore& store_;
  std::unique_ptr<storage::DatabaseReader> reader_;
  std::string to_;
  std::unique_ptr<storage::DatabaseWriter> writer_;
  std::int64_t rows_ = 0;
};

}  // namespace

namespace {

// For each variable, what the checkpoint's later databases say of the rows in earlier ones.
std::vector<storage::SupersededRows> superseded_rows(const LocalPlace& place,
                                                     const storage::Manifest& source,
                                                     const std::string& from,
                                                     const std::vector<VariableSpec>& variables) {
  std::vector<storage::SupersededRows> superseded(variables.size());
  if (source.base.empty()) return superseded;
  for (const storage::DatabaseInfo& database : source.databases) {
    const auto reader = place.store->open(storage::place_of(from, database.name));
    for (std::size_t i = 0; i < variables.size(); ++i)
      superseded[i].look_into(*reader, variables[i].name, {0, variables[i].rows()});
  }
  return superseded;
}

}  // namespace

CopiedWeights copy_weights(const LocalPlace& place, const std::string& from,
                           const std::vector<VariableSpec>& variables, const std::string& to) {
  const storage::Manifest source = storage::read_manifest(place.disk, from);
  storage::verify_here(place.disk, from, source);
  storage::Manifest made;
  made.global_step = source.global_step;
  made.saved_at_us = system_clock().wall_microseconds();
  made.seed = source.seed;
  for (const VariableSpec& variable : variables)
    made.variables.push_back(info_without_slots(source, variable, from));
  CopiedWeights copied{source.global_step, std::vector<std::int64_t>(variables.size())};
  const std::vector<std::size_t> order = key_order(variables);
  for (const storage::DatabaseInfo& database : source.databases)
    storage::verify_database_name(database.name);
  const auto superseded = superseded_rows(place, source, from, variables);
  std::size_t number = 0;
  for (const storage::DatabaseInfo& database : source.databases) {
    DatabaseCopy copy(*place.store, storage::place_of(from, database.name),
                      to + "/" + inner_name(database));
    for (const std::size_t i : order)
      copied.rows[i] += copy.copy(variables[i], superseded[i], number);
    ++number;
    for (storage::DatabaseInfo& each : copy.finish()) made.databases.push_back(std::move(each));
  }
  // The databases of a delta have some rows twice: how many there are in all is not known then.
  if (!source.base.empty()) copied.rows.assign(variables.size(), 0);
  place.disk.make_folder(to);  // of a model without variables it is still missing
  storage::commit(place.disk, to, made);
  return copied;
}

}  // namespace cairn
