// The library's own update by ids: embedding/, for one table at a time.
#include "core/kernels/cuda/embedding/tables.h"
#include "core/kernels/cuda/row_kernels.h"

namespace cairn::cuda {
namespace {

struct FusedUpdate {
  FusedUpdate(Queue& on, Rule how, const TensorType& table, const TensorType& ids)
      : queue(on), rule(how), bounds(on.memory(4 * sizeof(std::int64_t))) {
    const std::int64_t rows = table.shape[0], count = ids.shape.elements();
    const std::int64_t both[4] = {0, rows, 0, count};
    on.driver().copy(on.stream(), Device::Direction::kIn, bounds->data(),
                     reinterpret_cast<const std::byte*>(both), sizeof both);
    tables.dim = static_cast<int>(table.shape.row_elements());
    tables.count = 1;
    tables.first_row = bounds->as<std::int64_t>();
    tables.rows_max = rows;
    lookups.type = ids.dtype == DType::kInt32 ? IdType::kInt32 : IdType::kInt64;
    lookups.first_lookup = bounds->as<std::int64_t>() + 2;
    lookups.count = count;
    groups = std::make_unique<RowGroups>(tables, count);
  }

  void run(const RowBlock& block, const RuleRates* rates, const std::byte* ids,
           const std::byte* values) {
    tables.rows = reinterpret_cast<float*>(block.base);
    tables.row_stride = block.row_stride;
    tables.slot_offset = block.slot_offset;
    lookups.ids = ids;
    groups->find(lookups, nullptr, queue.stream());
    apply(rule, tables, *groups, reinterpret_cast<const float*>(values), rates, queue.stream());
  }

  Queue& queue;
  Rule rule;
  std::shared_ptr<Memory> bounds;  // of the table's rows, and of the lookups
  Tables tables;
  Lookups lookups;
  std::unique_ptr<RowGroups> groups;
};

bool fits(const RowBlock& block) { return block.row_stride % 4 == 0 && block.slot_offset % 4 == 0; }

}  // namespace

RowKernels::Update prepare_fused_update(Queue& queue, const UpdateRule& rule,
                                        const TensorType& table, const TensorType& ids) {
  Rule how = Rule::kSgd;
  switch (rule.kind) {
    case RuleKind::kSgd: break;
    case RuleKind::kLazyAdam: how = Rule::kAdam; break;
    default: return {};
  }
  const std::int64_t dim = table.shape.row_elements(), count = ids.shape.elements();
  if (table.dtype != DType::kFloat32 || dim % 4 != 0 || dim == 0 || dim > 512 || count == 0 ||
      count >= std::int64_t{1} << 31 || table.shape[0] == 0)
    return {};
  return [made = std::make_shared<FusedUpdate>(queue, how, table, ids)](
             const RowBlock& block, const RuleRates* rates, const std::byte* at,
             const std::byte* values) {
    CAIRN_CHECK(fits(block), "rows of ", block.dim, " floats are ", block.row_stride, " apart");
    made->run(block, rates, at, values);
  };
}

}  // namespace cairn::cuda
