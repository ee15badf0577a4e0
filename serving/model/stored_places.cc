#include "serving/model/stored_places.h"

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "storage/database_place.h"
#include "storage/merged_rows.h"
#include "storage/range_read.h"

namespace cairn::serving {
namespace {

void verify_order(const SavedRowsReader& weights, const VariableSpec& spec, RowRange all) {
  for (storage::DatabaseReader* const reader : weights.readers())
    for (const storage::TableRecord& table : storage::RangeRead(*reader, spec.name, all).tables())
      if (table.blocks_overlap)
        throw UnimplementedError(
            str("the blocks of variable \"", spec.name, "\" in ", reader->file(),
                " overlap, as an earlier release saved them, so that its rows cannot be read one ",
                "by one: resume the run and let it save once, and serve that checkpoint"));
}

}  // namespace

std::size_t StoredPlaces::memory_bytes() const {
  std::size_t bytes = superseded.bytes();
  for (const auto& each : databases)
    bytes += each.size() * (sizeof(storage::BlockPlace) + sizeof(std::uint64_t));
  return bytes;
}

// Small blocks share bytes of the file.
std::size_t StoredPlaces::disk_bytes() const {
  std::size_t bytes = 0;
  for (const auto& each : databases)
    for (std::size_t i = 0; i < each.size(); ++i)
      if (i == 0 || each[i].begin != each[i - 1].begin || each[i].file != each[i - 1].file)
        bytes += each[i].bytes;
  return bytes;
}

StoredDatabases::StoredDatabases(const SavedRowsReader& weights) : weights_(weights) {
  for (const auto& database : weights.manifest().databases) {
    storage::DatabaseBlocks blocks =
        storage::blocks_of_database(storage::place_of(weights.folder(), database.name));
    std::vector<std::size_t> numbers;
    for (const std::string& path : blocks.files) numbers.push_back(files_->open(path));
    for (auto& [variable, places] : blocks.blocks)
      for (storage::BlockPlace& each : places)
        each.file = static_cast<std::uint32_t>(numbers[each.file]);
    databases_.push_back(std::move(blocks));
  }
}

StoredPlaces StoredDatabases::places_of(const VariableSpec& spec) {
  const RowRange all{0, storage::row_count(weights_.find(spec))};
  verify_order(weights_, spec, all);
  StoredPlaces places{.databases = {},
                      .files = files_,
                      .superseded = storage::SupersededRows(weights_.readers(), spec.name, all)};
  for (storage::DatabaseBlocks& database : databases_)
    places.databases.push_back(std::move(database.blocks[spec.name]));
  return places;
}

}  // namespace cairn::serving
