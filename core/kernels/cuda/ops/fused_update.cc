// The library's own updates by ids: embedding/, for sets of tables that lie anywhere.
#include <algorithm>
#include <limits>

#include "core/kernels/cuda/embedding/tables.h"
#include "core/kernels/cuda/ops/row_kernels.h"

namespace cairn::cuda {
namespace {

using UpdateOf = RowKernels::UpdateOf;
using UpdateRun = RowKernels::UpdateRun;

constexpr std::int64_t kVector = 4;  // floats; the unit of gradients' places

std::int64_t lookups_of(std::span<const UpdateOf> all) {
  std::int64_t count = 0;
  for (const UpdateOf& one : all) count += one.ids->shape.elements();
  return count;
}

// The lowest address that `address` gives for any of the runs. Distances are counted from it.
template <typename Address>
std::uintptr_t lowest(std::span<const UpdateRun> runs, const Address& address) {
  std::uintptr_t least = std::numeric_limits<std::uintptr_t>::max();
  for (const UpdateRun& run : runs)
    least = std::min(least, reinterpret_cast<std::uintptr_t>(address(run)));
  return least;
}

class FusedUpdates {
 public:
  FusedUpdates(Queue& queue, std::span<const UpdateOf> all)
      : queue_(queue),
        rule_(all[0].rule.kind == RuleKind::kSgd ? Rule::kSgd : Rule::kAdam),
        id_bytes_(static_cast<std::int64_t>(dtype_bytes(all[0].ids->dtype))) {
    set_.count = static_cast<int>(all.size());
    set_.dim = static_cast<int>(all[0].table.shape.row_elements());
    set_.type = id_bytes_ == 4 ? IdType::kInt32 : IdType::kInt64;
    std::int64_t rows_max = 0;
    for (std::size_t t = 0; t < all.size(); ++t) {
      ScatteredTable& table = set_.tables[t];
      table.rows = all[t].table.shape[0];
      table.first_lookup = set_.lookups;
      set_.lookups += all[t].ids->shape.elements();
      rows_max = std::max(rows_max, table.rows);
    }
    groups_ = std::make_unique<RowGroups>(set_.dim, set_.count, rows_max, set_.lookups);
  }

  void run(std::span<const UpdateRun> runs) {
    const auto rows = lowest(runs, [](const UpdateRun& one) { return one.block.base; });
    const auto ids = lowest(runs, [](const UpdateRun& one) { return one.ids; });
    const auto values = lowest(runs, [](const UpdateRun& one) { return one.values; });
    const auto rates = lowest(runs, [](const UpdateRun& one) { return one.rates; });
    for (std::size_t t = 0; t < runs.size(); ++t) {
      ScatteredTable& table = set_.tables[t];
      const UpdateRun& one = runs[t];
      const auto after = [](const void* at, std::uintptr_t first, std::int64_t unit) {
        return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at) - first) / unit;
      };
      table.rows_at = after(one.block.base, rows, sizeof(float));
      table.row_stride = static_cast<std::uint32_t>(one.block.row_stride);
      table.slot_offset = one.block.slot_offset;
      table.ids_at = after(one.ids, ids, id_bytes_);
      const std::int64_t gradients = after(one.values, values, kVector * sizeof(float));
      const std::int64_t stride = one.values_stride / kVector;
      CAIRN_CHECK(gradients + set_.lookups * stride < std::int64_t{1} << 32,
                  "gradients of one step that lie more than 64 GiB apart");
      CAIRN_CHECK(one.values_stride % kVector == 0, "rows of gradients are ", one.values_stride,
                  " floats apart");
      table.gradients_at = static_cast<std::uint32_t>(gradients);
      table.gradient_stride = static_cast<std::uint32_t>(stride);
      table.rates_at = static_cast<std::uint32_t>(after(one.rates, rates, sizeof(RuleRates)));
    }
    set_.rows = reinterpret_cast<float*>(rows);
    set_.ids = reinterpret_cast<const void*>(ids);
    set_.gradients = reinterpret_cast<const float*>(values);
    set_.rates = reinterpret_cast<const RuleRates*>(rates);
    groups_->find(set_, queue_.stream());
    apply(rule_, set_, *groups_, queue_.stream());
  }

 private:
  Queue& queue_;
  Rule rule_;
  std::int64_t id_bytes_;
  ScatteredTables set_;
  std::unique_ptr<RowGroups> groups_;
};

}  // namespace

bool fuses(const UpdateOf& one) {
  if (!one.ids) return false;
  const std::int64_t dim = one.table.shape.row_elements(), count = one.ids->shape.elements();
  return (one.rule.kind == RuleKind::kSgd || one.rule.kind == RuleKind::kLazyAdam) &&
         one.table.dtype == DType::kFloat32 && dim % kVector == 0 && dim > 0 && dim <= 512 &&
         count > 0 && count < std::int64_t{1} << 31 && one.table.shape[0] > 0;
}

bool fuse_together(std::span<const UpdateOf> set, const UpdateOf& one) {
  const UpdateOf& first = set[0];
  return set.size() < ScatteredTables::kCountMax && one.rule.kind == first.rule.kind &&
         one.table.shape.row_elements() == first.table.shape.row_elements() &&
         one.ids->dtype == first.ids->dtype &&
         lookups_of(set) + one.ids->shape.elements() < std::int64_t{1} << 31;
}

RowKernels::Updates prepare_fused_updates(Queue& queue, std::span<const UpdateOf> set) {
  return [made = std::make_shared<FusedUpdates>(queue, set)](std::span<const UpdateRun> runs) {
    made->run(runs);
  };
}

}  // namespace cairn::cuda
