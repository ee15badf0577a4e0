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
