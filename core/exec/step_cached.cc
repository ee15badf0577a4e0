// Lookups and updates of tables that are cached on the step's device: their ids are exchanged for
// places in the cache, and the same kernels run as for tables that lie there whole.
//
// A read's batch of ids is found once, and an update by the same ids uses what was found, unless
// another batch came in between. Such steps are not recorded: what the cache does for a batch is
// not the same each time.
#include "core/exec/step.h"
#include "core/exec/wave_cutter.h"
#include "core/graph/op_def.h"

namespace cairn {

DeviceRows::Held* Step::hold(std::size_t variable) {
  return space_.rows->hold(*lender_, plan_->bound[variable], plan_->variable_uses[variable]);
}

// The ids of all reads of a group make one batch, if they are of one dtype.
void Step::serve_cached(DeviceRows::Held& held, std::size_t g) {
  ReadHere& here = bound_->waves[wave_].here[g];
  const ReadGroup& group = plan_->waves[wave_].reads[g];
  const TensorType all = joined_type(group.nodes);
  held.batch = nullptr;
  const std::byte* places = nullptr;
  if (all.shape.rank() > 0) {
    const std::vector<Tensor> columns = columns_of(group, inputs_.elements);
    if (!columns.empty()) places = held.cache->use(columns);
    if (places == nullptr)
      places = find_cached(held, group.variable, all, join_ids(group.nodes, here.joined_ids));
    held.batch = &here;
    held.places = places;
  }
  here.gathers.resize(group.nodes.size());
  for (std::size_t k = 0; k < group.nodes.size(); ++k) {
    const std::int32_t i = group.nodes[k], ids = input(i, 0);
    const TensorType& type = bound_->type(ids);
    const std::byte* at = places;
    if (places == nullptr) at = find_cached(held, group.variable, type, data(ids));
    if (!here.gathers[k]) {
      const RowKernels::GatherOf one{type_here(held), TensorType{DType::kInt32, type.shape},
                                     dtype_of_rows(i)};
      here.gathers[k] = space_.device.row_kernels()->prepare_gathers({&one, 1});
    }
    const RowKernels::GatherRun run = run_of_lookup(i, held.cache->block(), at);
    here.gathers[k]({&run, 1});
    if (places != nullptr) places += type.shape.elements() * sizeof(std::int32_t);
  }
}

const std::byte* Step::find_cached(DeviceRows::Held& held, std::int32_t variable,
                                   const TensorType& ids, const std::byte* at) {
  const bool changed = plan_->variable_uses[static_cast<std::size_t>(variable)].changed;
  return held.cache->find(ids, at,
                          changed ? CachedRows::Access::kChanges : CachedRows::Access::kReads);
}

// The group's ids, if they are columns of elements; otherwise empty.
std::vector<Tensor> Step::columns_of(const ReadGroup& group,
                                     const std::vector<std::vector<Element>>& elements) const {
  std::vector<Tensor> columns;
  for (const std::int32_t read : group.nodes) {
    const std::int32_t value = bound_->root(input(read, 0));
    const auto producer =
        static_cast<std::size_t>(plan_->producer[static_cast<std::size_t>(value)]);
    const Node& n = plan_->graph.nodes[producer];
    if (n.op->effect != Effect::kAdvance) return {};
    const auto iterator = static_cast<std::size_t>(n.attributes.get<std::int64_t>("iterator"));
    const auto element = static_cast<std::size_t>(plan_->advance_number[producer]);
    columns.push_back(
        elements[iterator][element][static_cast<std::size_t>(value - plan_->value_base[producer])]);
  }
  return columns;
}

// Whether a run finds rows of the variable for this group alone.
bool Step::has_only_batch(std::size_t wave, std::size_t group) const {
  const std::int32_t variable = plan_->waves[wave].reads[group].variable;
  for (std::size_t w = 0; w < plan_->waves.size(); ++w) {
    const std::vector<ReadGroup>& reads = plan_->waves[w].reads;
    for (std::size_t g = 0; g < reads.size(); ++g)
      if (reads[g].variable == variable && (w != wave || g != group)) return false;
    for (const std::int32_t update : plan_->waves[w].updates) {
      const UpdateIds& source = plan_->update_ids[static_cast<std::size_t>(update)];
      if (variable_number(node(update)) == variable &&
          (source.wave != static_cast<std::int32_t>(wave) ||
           source.group != static_cast<std::int32_t>(group)))
        return false;
    }
  }
  return true;
}

// What this run does is enqueued: rows of later ones may move beside it.
void Step::prepare_later() {
  if (!inputs_.later || lender_ == nullptr) return;
  std::vector<std::vector<std::vector<Element>>> later;  // by runs, from 1 on
  for (std::size_t w = 0; w < plan_->waves.size(); ++w)
    for (std::size_t g = 0; g < plan_->waves[w].reads.size(); ++g) {
      const ReadGroup& group = plan_->waves[w].reads[g];
      const ReadHere& here = bound_->waves[w].here[g];
      if (!here.served || !here.cached || !has_only_batch(w, g)) continue;
      const auto variable = static_cast<std::size_t>(group.variable);
      // The store may have taken it back since.
      const DeviceRows::Held* const held = hold(variable);
      if (held == nullptr || held->cache == nullptr) continue;
      CachedRows& cache = *held->cache;
      if (columns_of(group, inputs_.elements).empty()) continue;
      const auto access = plan_->variable_uses[variable].changed ? CachedRows::Access::kChanges
                                                                 : CachedRows::Access::kReads;
      while (cache.room() > 0) {
        const auto runs = static_cast<std::size_t>(cache.prepared()) + 1;
        while (later.size() < runs)
          later.push_back(inputs_.later(static_cast<int>(later.size()) + 1));
        if (later[runs - 1].empty() || !cache.prepare(columns_of(group, later[runs - 1]), access))
          break;
      }
    }
}

// The places of an update's rows.
const std::byte* Step::places_of(BoundUpdate& update, DeviceRows::Held& held) {
  const UpdateIds& source = plan_->update_ids[static_cast<std::size_t>(update.node)];
  if (source.wave >= 0 && held.batch == &bound_->waves[static_cast<std::size_t>(source.wave)]
                                             .here[static_cast<std::size_t>(source.group)])
    return held.places;
  held.batch = nullptr;
  return find_cached(held, variable_number(node(update.node)), ids_type(update.node),
                     ids_here(update));
}

// As kernels here see a variable's parameters.
TensorType Step::type_here(const DeviceRows::Held& held) {
  if (held.cache == nullptr) return held.type;
  return {held.type.dtype, held.type.shape.with_dim(0, held.cache->block().rows)};
}

}  // namespace cairn
