// Checkpoints with whatever databases a test wants: bases and deltas, rows that have gone, blocks
// of every form.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/disk/disk.h"
#include "serving/model/saved_rows.h"
#include "storage/checkpoint_folder.h"
#include "tests/storage/fixture.h"

namespace cairn::serving::testing {

inline VariableSpec saved_spec(bool hashed, DType dtype = DType::kFloat32, std::int64_t rows = 1000,
                               std::int64_t dim = 6) {
  VariableSpec spec{.name = "table", .dtype = dtype, .shape = Shape{rows, dim}, .hashed = hashed};
  if (dtype == DType::kFloat32) spec.initializer = Initializer::uniform(-1, 1);
  return spec;
}

// With Adagrad's slots, which blocks from before it had its rule lack.
inline storage::VariableInfo info_of(const VariableSpec& spec) {
  storage::VariableInfo info{.name = spec.name,
                             .dtype = spec.dtype,
                             .shape = spec.shape,
                             .parts = {{0, spec.rows()}},
                             .hashed = spec.hashed};
  if (spec.dtype != DType::kFloat32) return info;
  info.rule = {RuleKind::kAdagrad, {0.1f}};
  info.slots = {"accumulator"};
  return info;
}

// One database of a checkpoint, in the order of its keys.
class SavedDatabase {
 public:
  SavedDatabase(const std::string& folder, const VariableSpec& spec, bool whole = false)
      : spec_(spec), folder_(folder) {
    storage::TableRecord table{.variable = spec.name,
                               .dtype = spec.dtype,
                               .shape = spec.shape,
                               .rows = {0, spec.rows()},
                               .whole = whole};
    put(storage::RecordKind::kTable, 0, table);
  }
  // Rows whose elements come from `random`, with `slots` slots as Adagrad has them.
  void block(std::int64_t first, std::vector<std::uint64_t> offsets, storage::BlockForm form,
             std::uint32_t slots, std::mt19937& random) {
    storage::StoredRows rows{.dtype = spec_.dtype,
                             .rule = slots > 0 ? RuleKind::kAdagrad : RuleKind::kAssign,
                             .slots = slots,
                             .dim = spec_.dim(),
                             .first_row = first,
                             .offsets = std::move(offsets)};
    rows.data.resize(rows.offsets.size() * rows.row_bytes());
    if (spec_.dtype == DType::kFloat32) {
      auto* const values = reinterpret_cast<float*>(rows.data.data());
      for (std::size_t i = 0; i < rows.data.size() / sizeof(float); ++i)
        values[i] = static_cast<float>(random() % 64) / 8 - 4;
    } else {
      for (std::byte& each : rows.data) each = static_cast<std::byte>(random());
    }
    const std::string key =
        encode(storage::RecordKey{spec_.name, storage::RecordKind::kRows, first});
    records_[key] = encode(key, rows, form);
  }
  void gone(std::int64_t first, std::vector<std::uint64_t> offsets) {
    put(storage::RecordKind::kGone, first, storage::GoneRows{first, std::move(offsets)});
  }
  std::vector<storage::FileInfo> write() const {
    const auto store = storage::make_rocks_row_store();
    const auto writer = store->create(folder_);
    for (const auto& [key, value] : records_) writer->put(key, value);
    return writer->finish();
  }

 private:
  template <typename Record>
  void put(storage::RecordKind kind, std::int64_t row, const Record& record) {
    const std::string key = encode(storage::RecordKey{spec_.name, kind, row});
    records_[key] = encode(key, record);
  }
  VariableSpec spec_;
  std::string folder_;
  std::map<std::string, std::string> records_;
};

// Commits the manifest of a checkpoint in `folder` that has these databases.
inline void commit_databases(const std::string& folder, const VariableSpec& spec,
                             const std::vector<std::vector<storage::FileInfo>>& databases,
                             std::uint64_t rows = 100) {
  storage::Manifest manifest{.checkpoint = 1, .global_step = 7, .seed = 5};
  manifest.variables = {info_of(spec)};
  for (const auto& files : databases)
    for (storage::DatabaseInfo& each : storage::group_by_database(files)) {
      each.rows = rows;
      manifest.databases.push_back(std::move(each));
    }
  storage::commit(system_disk(), folder, manifest);
}

}  // namespace cairn::serving::testing
