#include "serving/model/saved_rows.h"

#include <algorithm>
#include <utility>

#include "core/base/look_up.h"
#include "storage/any_disk.h"
#include "storage/database_place.h"
#include "storage/merged_rows.h"

namespace cairn::serving {

SavedRowsReader::SavedRowsReader(std::string folder)
    : folder_(std::move(folder)), manifest_(storage::read_manifest(storage::any_disk(), folder_)) {
  storage::verify_here(storage::any_disk(), folder_, manifest_);
  const auto store = storage::make_rocks_row_store();
  for (const auto& database : manifest_.databases) {
    storage::verify_database_name(database.name);
    databases_.push_back(store->open(storage::place_of(folder_, database.name)));
  }
}

const storage::VariableInfo& SavedRowsReader::find(const VariableSpec& variable) const {
  const auto found =
      std::ranges::find(manifest_.variables, variable.name, &storage::VariableInfo::name);
  if (found == manifest_.variables.end() || found->dtype != variable.dtype ||
      found->shape != variable.shape)
    throw DataLossError(str("the weights in ", folder_, " have no variable \"", variable.name,
                            "\" of ", TensorType{variable.dtype, variable.shape}.to_string(),
                            ": save the model again"));
  return *found;
}

std::vector<storage::DatabaseReader*> SavedRowsReader::readers() const {
  std::vector<storage::DatabaseReader*> readers;
  for (const auto& database : databases_) readers.push_back(database.get());
  return readers;
}

void SavedRowsReader::read(const VariableSpec& variable, const Take& take) const {
  const storage::VariableInfo& found = find(variable);
  storage::MergedRows rows(readers(), found, {0, storage::row_count(found)});
  const std::size_t bytes = rows.form().bytes();
  constexpr std::size_t kLookUpRows = 256;
  storage::RowBatch batch;
  while (rows.next(batch))
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      if (i % kLookUpRows == 0) look_up();
      take(batch.rows[i], batch.data.data() + i * bytes);
    }
}

}  // namespace cairn::serving
