// The update rules' door: which kernel serves which kind, and the assignments, which serve every
// dtype.
//
// Every update of every variable comes through here, on the shard's thread or in a local store.
// Kernels are chosen once per call, not per row; the loops are in rules_adaptive.cc and
// rules_moments.cc.
#include <algorithm>
#include <array>
#include <span>
#include <type_traits>

#include "core/base/error.h"
#include "core/graph/rules/rule_def.h"
#include "core/kernels/cpu/rule_pass.h"
#include "core/memory/bulk_copy.h"

namespace cairn {
namespace {

// SGD is assign_add of the gradient times -rate: one kernel, and the same bits.
CAIRN_CLONES void assign_add_pass(const Pass& pass, float sign) {
  named_rows<0>(pass, [=](float& p, float&, float&, float&, float g) { p += sign * g; });
}

CAIRN_CLONES void assign_mul_pass(const Pass& pass) {
  named_rows<0>(pass, [](float& p, float&, float&, float&, float g) { p *= g; });
}
CAIRN_CLONES void assign_div_pass(const Pass& pass) {
  named_rows<0>(pass, [](float& p, float&, float&, float&, float g) { p /= g; });
}
CAIRN_CLONES void assign_min_pass(const Pass& pass) {
  named_rows<0>(pass, [](float& p, float&, float&, float&, float g) { p = g < p ? g : p; });
}
CAIRN_CLONES void assign_max_pass(const Pass& pass) {
  named_rows<0>(pass, [](float& p, float&, float&, float&, float g) { p = g > p ? g : p; });
}

constexpr RowPass kAssignmentPasses[] = {
    {RuleKind::kAssignAdd,
     [](const UpdateRule&, const RuleInputs&, const Pass& pass) { assign_add_pass(pass, 1); }},
    {RuleKind::kAssignSub,
     [](const UpdateRule&, const RuleInputs&, const Pass& pass) { assign_add_pass(pass, -1); }},
    {RuleKind::kAssignMul,
     [](const UpdateRule&, const RuleInputs&, const Pass& pass) { assign_mul_pass(pass); }},
    {RuleKind::kAssignDiv,
     [](const UpdateRule&, const RuleInputs&, const Pass& pass) { assign_div_pass(pass); }},
    {RuleKind::kAssignMin,
     [](const UpdateRule&, const RuleInputs&, const Pass& pass) { assign_min_pass(pass); }},
    {RuleKind::kAssignMax,
     [](const UpdateRule&, const RuleInputs&, const Pass& pass) { assign_max_pass(pass); }},
    {RuleKind::kSgd, [](const UpdateRule&, const RuleInputs& in, const Pass& pass) {
       assign_add_pass(pass, -in.learning_rate);
     }}};

void apply_float(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  using Apply = decltype(RowPass::apply);
  static const std::array<Apply, kRuleKindCount> by_loop = [] {
    std::array<Apply, kRuleKindCount> all{};
    for (const std::span<const RowPass> part :
         {std::span<const RowPass>(kAssignmentPasses), adaptive_passes(), moments_passes(),
          custom_passes()})
      for (const RowPass& one : part) all[static_cast<std::size_t>(one.loop)] = one.apply;
    return all;
  }();
  const Apply apply = by_loop[static_cast<std::size_t>(rule_def(rule.kind).loop)];
  CAIRN_CHECK(apply != nullptr, "rule ", rule_name(rule.kind), " has no arithmetic");
  apply(rule, in, pass);
}

template <typename T, typename F>
void change_integers(const RowBlock& block, const std::int64_t* numbers, std::size_t count,
                     const std::byte* values, F change) {
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t row = numbers != nullptr ? numbers[i] : static_cast<std::int64_t>(i);
    T* p = reinterpret_cast<T*>(block.base) + row * block.row_stride;
    const T* v = reinterpret_cast<const T*>(values) + static_cast<std::int64_t>(i) * block.dim;
    for (std::int64_t j = 0; j < block.dim; ++j) p[j] = change(p[j], v[j]);
  }
}

// Sums and products wrap around, as in the reference: computed unsigned, where overflow is defined.
template <typename T>
void apply_to_integers(RuleKind kind, const RowBlock& block, const std::int64_t* numbers,
                       std::size_t count, const std::byte* values) {
  using U = std::make_unsigned_t<T>;
  auto by = [&](auto change) { change_integers<T>(block, numbers, count, values, change); };
  switch (kind) {
    case RuleKind::kAssignAdd:
      return by([](T p, T v) { return static_cast<T>(static_cast<U>(p) + static_cast<U>(v)); });
    case RuleKind::kAssignSub:
      return by([](T p, T v) { return static_cast<T>(static_cast<U>(p) - static_cast<U>(v)); });
    case RuleKind::kAssignMul:
      return by([](T p, T v) { return static_cast<T>(static_cast<U>(p) * static_cast<U>(v)); });
    case RuleKind::kAssignMin: return by([](T p, T v) { return std::min(p, v); });
    case RuleKind::kAssignMax: return by([](T p, T v) { return std::max(p, v); });
    default: CAIRN_CHECK(false, "rule ", rule_name(kind), " does not change integers");
  }
}

// Copies serve every dtype; copy_bulk() passes the caches where a row is megabytes.
void assign_rows(const RowBlock& block, const std::int64_t* numbers, std::size_t count,
                 const std::byte* values) {
  std::size_t bytes = static_cast<std::size_t>(block.dim) * dtype_bytes(block.dtype);
  std::size_t stride = static_cast<std::size_t>(block.row_stride) * dtype_bytes(block.dtype);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t row = numbers != nullptr ? static_cast<std::size_t>(numbers[i]) : i;
    copy_bulk(block.base + row * stride, values + i * bytes, bytes);
  }
}

void apply_integers(const UpdateRule& rule, const RowBlock& block, const std::int64_t* numbers,
                    std::size_t count, const std::byte* values) {
  verify_rule_dtype(rule.kind, block.dtype);
  switch (block.dtype) {
    case DType::kInt32:
      return apply_to_integers<std::int32_t>(rule.kind, block, numbers, count, values);
    case DType::kInt64:
      return apply_to_integers<std::int64_t>(rule.kind, block, numbers, count, values);
    case DType::kUint8:
      return apply_to_integers<std::uint8_t>(rule.kind, block, numbers, count, values);
    default: CAIRN_CHECK(false, "rule ", rule_name(rule.kind), " changes no such dtype");
  }
}

void apply(const UpdateRule& rule, const RuleInputs& inputs, const RowBlock& block,
           const std::int64_t* numbers, std::size_t count, const std::byte* values) {
  if (rule.kind == RuleKind::kAssign) return assign_rows(block, numbers, count, values);
  if (block.dtype != DType::kFloat32) return apply_integers(rule, block, numbers, count, values);
  apply_float(rule, inputs,
              {reinterpret_cast<float*>(block.base), block.row_stride, block.slot_offset, block.dim,
               block.rows, numbers, count, reinterpret_cast<const float*>(values),
               is_table_rule(rule.kind)});
}

}  // namespace

void apply_rule(const UpdateRule& rule, const RuleInputs& inputs, const RowBlock& block,
                std::span<const std::int64_t> row_numbers, const std::byte* values) {
  // An empty span may have no address, and a pass without numbers means every row: an update of no
  // rows must not become one of all.
  static constexpr std::int64_t kNone = 0;
  apply(rule, inputs, block, row_numbers.empty() ? &kNone : row_numbers.data(), row_numbers.size(),
        values);
}

void apply_rule_dense(const UpdateRule& rule, const RuleInputs& inputs, const RowBlock& block,
                      const std::byte* values) {
  RowBlock all = block;
  bool one_plane = block.row_stride == block.dim && !rule_def(rule.kind).one_number_per_row &&
                   (rule_slots(rule).empty() || block.slot_offset >= block.rows * block.dim);
  // Without gaps between rows, and with each slot in a plane of its own, all rows are one long row:
  // one loop without a tail per row, which long_row() walks in stripes. A rule with one number per
  // row needs to know where rows begin.
  if (one_plane) {
    all.dim = all.row_stride = block.rows * block.dim;
    all.rows = 1;
  }
  apply(rule, inputs, all, nullptr, static_cast<std::size_t>(all.rows), values);
}

}  // namespace cairn
