// Rows that a store gave, on a device with memory of its own: dealt out there to the lookups, and
// their gradients summed there, so that each row travels once each way, however often it occurs.
#include <algorithm>

#include "core/exec/step.h"
#include "core/graph/op_def.h"
#include "core/graph/rules/rule_def.h"

namespace cairn {
namespace {

std::size_t row_bytes_of(const TensorType& type) {
  return static_cast<std::size_t>(type.shape.row_elements()) * dtype_bytes(type.dtype);
}

}  // namespace

bool Step::deals_here(const ReadGroup& group) const {
  return space_.rows != nullptr && !group.whole &&
         plan_->graph.variables[static_cast<std::size_t>(group.variable)].type.dtype !=
             DType::kString;
}

// The distinct rows, and for each id which of them is its row, become a table and ids of lookups.
void Step::deal_out(std::size_t g) {
  const ReadGroup& group = plan_->waves[wave_].reads[g];
  const TensorType& type = plan_->graph.variables[static_cast<std::size_t>(group.variable)].type;
  ReadHere& here = bound_->waves[wave_].here[g];
  const Tensor& rows = bound_->waves[wave_].reads[g].value;
  const std::span<const std::int32_t> places = bound_->waves[wave_].ids[g].inverse();
  if (here.dealt == nullptr) {
    here.count = static_cast<std::int64_t>(places.size());
    here.most = std::min(here.count, type.shape[0]);
    here.places = space_.device.allocate(places.size_bytes());
    here.dealt = space_.device.allocate(static_cast<std::size_t>(here.most) * row_bytes_of(type));
  }
  space_.device.copy(Device::Direction::kIn, here.places.get(),
                     reinterpret_cast<const std::byte*>(places.data()), places.size_bytes());
  space_.device.copy_in_kept(here.dealt.get(), rows.raw(), rows.bytes(), rows.owner());
  const std::int64_t dim = type.shape.row_elements();
  const RowBlock block{type.dtype, here.dealt.get(), rows.shape()[0], dim, dim};
  const std::byte* at = here.places.get();
  for (std::int32_t i : group.nodes) {
    look_up_rows(i, block, at);
    at +=
        static_cast<std::size_t>(bound_->type(input(i, 0)).shape.elements()) * sizeof(std::int32_t);
  }
}

// Whether the device can sum the update's rows: those of lookups that it was dealt in this run.
bool Step::sums_here(const BoundUpdate& update) const {
  const Node& n = node(update.node);
  if (space_.rows == nullptr || !is_sparse(update.node) || !has_ids_of_read(update)) return false;
  return equal_ids(n.attributes.get<UpdateRule>("rule").kind) == EqualIds::kSum &&
         variable_of(update.node).type.dtype == DType::kFloat32 &&
         source_of(update).dealt != nullptr;
}

const ReadHere& Step::source_of(const BoundUpdate& update) const {
  const UpdateIds& source = plan_->update_ids[static_cast<std::size_t>(update.node)];
  return bound_->waves[static_cast<std::size_t>(source.wave)]
      .here[static_cast<std::size_t>(source.group)];
}

// The sums are what a step of SGD with rate -1 makes of rows of zeros: its kernels add the rows of
// equal ids of all tables in one go, in a fixed order.
void Step::prepare_sums(std::span<BoundUpdate* const> updates) {
  SumsTogether& sums = bound_->waves[wave_].sums;
  if (std::ranges::equal(sums.members, updates)) return;
  std::vector<RowKernels::UpdateOf> all;
  sums.offsets.clear();
  sums.bytes = 0;
  for (const BoundUpdate* update : updates) {
    const ReadHere& from = source_of(*update);
    const TensorType& table = variable_of(update->node).type;
    all.push_back({UpdateRule{RuleKind::kSgd, {}},
                   TensorType{table.dtype, table.shape.with_dim(0, from.most)},
                   TensorType{DType::kInt32, {from.count}}});
    sums.offsets.push_back(sums.bytes);
    constexpr std::size_t kAlign = 256;
    sums.bytes +=
        (static_cast<std::size_t>(from.most) * row_bytes_of(table) + kAlign - 1) / kAlign * kAlign;
  }
  RuleRates rates;
  rates.rate = -1;
  sums.memory = space_.device.allocate(sums.bytes);
  sums.rates = space_.device.allocate(sizeof rates);
  space_.device.copy(Device::Direction::kIn, sums.rates.get(),
                     reinterpret_cast<const std::byte*>(&rates), sizeof rates);
  sums.run = space_.device.row_kernels()->prepare_updates(all);
  sums.members.assign(updates.begin(), updates.end());
}

// Begins to bring the sums to where the store wants them.
void Step::begin_sums() {
  BoundWave& wave = bound_->waves[wave_];
  std::vector<BoundUpdate*>& updates = space_.made.together;
  updates.clear();
  for (BoundUpdate& update : wave.updates) {
    update.summed = !stops(update.node) && !made_here(update) && sums_here(update);
    if (update.summed) updates.push_back(&update);
  }
  if (updates.empty()) return;
  prepare_sums(updates);
  SumsTogether& sums = wave.sums;
  RowKernels& kernels = *space_.device.row_kernels();
  kernels.fill_zero(sums.memory.get(), sums.bytes);
  space_.made.runs.clear();
  for (std::size_t k = 0; k < updates.size(); ++k) {
    const ReadHere& from = source_of(*updates[k]);
    const std::int64_t dim = variable_of(updates[k]->node).type.shape.row_elements();
    RowKernels::UpdateRun run = values_of(*updates[k], dim);
    run.block = {DType::kFloat32, sums.memory.get() + sums.offsets[k], from.most, dim, dim};
    run.rates = reinterpret_cast<const RuleRates*>(sums.rates.get());
    run.ids = from.places.get();
    space_.made.runs.push_back(run);
  }
  sums.run(space_.made.runs);
  kernels.finish_updates();
  for (std::size_t k = 0; k < updates.size(); ++k) {
    TensorType type = variable_of(updates[k]->node).type;
    type.shape = type.shape.with_dim(0, ids_of_source(*updates[k]).tensor().shape()[0]);
    space_.host.begin_update(updates[k]->node, host_tensor(updates[k]->node, type),
                             sums.memory.get() + sums.offsets[k]);
  }
}

}  // namespace cairn
