#include "serving/model/stored_tables.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/graph/op_def.h"
#include "serving/model/stored_places.h"
#include "serving/model/stored_rows.h"

namespace cairn::serving {
namespace {

std::size_t packed_row_bytes(const VariableSpec& spec) {
  return static_cast<std::size_t>(spec.dim()) * dtype_bytes(spec.dtype);
}

// By variable, whether the graph reads it by rows alone.
std::vector<bool> read_by_rows(const Graph& graph) {
  std::vector<bool> by_rows(graph.variables.size(), true);
  for (const Node& node : graph.nodes)
    if (is_read(node) && std::string_view(node.op->name) != "gather_variable")
      by_rows[static_cast<std::size_t>(node.attributes.get<std::int64_t>("variable"))] = false;
  return by_rows;
}

// In memory a row of a pool has a place in a list besides, and one of a hashed table an entry of
// the index. The manifest knows how many rows there are, and not of which table.
class MemoryNeeds {
 public:
  explicit MemoryNeeds(const SavedRowsReader& weights) {
    for (const auto& database : weights.manifest().databases) saved_rows_ += database.rows;
  }
  void add(const VariableSpec& spec) {
    const std::size_t row = packed_row_bytes(spec) + sizeof(std::uint32_t);
    if (spec.hashed)
      hashed_ = std::max(hashed_, saved_rows_ * (row + IdIndex::kBytesAnId));
    else
      dense_ += row * static_cast<std::size_t>(spec.rows());
  }
  std::size_t bytes() const { return dense_ + hashed_; }

 private:
  std::size_t saved_rows_ = 0, dense_ = 0, hashed_ = 0;
};

}  // namespace

StoredTables::StoredTables(const SavedRowsReader& weights,
                           const std::vector<VariableSpec>& variables, const Graph& graph,
                           bool (*is_large)(const VariableSpec&), const Options& options) {
  if (options.memory == nullptr) return;
  const std::vector<bool> by_rows = read_by_rows(graph);
  MemoryNeeds whole(weights), all(weights);
  std::vector<std::size_t> stored;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    all.add(variables[i]);
    if (is_large(variables[i]) && by_rows[i])
      stored.push_back(i);
    else
      whole.add(variables[i]);
  }
  const std::size_t replaced = options.before != nullptr ? options.before->bytes() : 0;
  if (stored.empty() || options.memory->has_room_for(all.bytes(), replaced)) {
    hold_ = options.memory->hold(all.bytes(), {}, options.what);
    return;
  }
  std::size_t held = whole.bytes();
  StoredDatabases databases(weights);
  std::map<std::size_t, StoredPlaces> places;
  MemoryBudget::TableBytes tables;
  std::size_t on_disk = 0;
  for (const std::size_t i : stored) {
    StoredPlaces& of = places[i] = databases.places_of(variables[i]);
    held += of.memory_bytes();
    tables[packed_row_bytes(variables[i])] += of.disk_bytes();
    on_disk += of.disk_bytes();
  }
  hold_ = options.memory->hold(held, std::move(tables), options.what);
  rows_.resize(variables.size());
  for (const std::size_t i : stored)
    rows_[i] = std::make_shared<StoredRows>(
        std::make_shared<VariableSpec>(variables[i]), weights.seed(), std::move(places[i]),
        hold_->next_table(), hold_->cache(packed_row_bytes(variables[i])), options.counters);
  log_info(options.what, ": tables read from its files: ", stored.size(), ", of ", on_disk >> 20,
           " MB; memory of the caches: ", options.memory->cache_bytes() >> 20, " MB");
}

}  // namespace cairn::serving
