// Which values a device keeps as bfloat16.
#include "core/exec/bind.h"
#include "core/graph/op_def.h"

namespace cairn {

// Whether the node computes something, and the device can do that with bfloat16 in place of
// float32.
bool Binder::takes_bfloat16(std::int32_t i) const {
  const Node& n = node(i);
  const std::int32_t made = plan_.value_base[static_cast<std::size_t>(i)];
  return n.op->effect == Effect::kNone && !is_given(n) && !is_check(n) &&
         bound_.root(made) == made && device_.takes_bfloat16(*n.op);
}

// Under kMixedBfloat16 a value is kept as bfloat16 if some product reads it, which would round it
// anyway, and all its other readers can take bfloat16.
void Binder::find_narrow() {
  bound_.narrow_.assign(plan_.values(), false);
  if (plan_.options.products != Arithmetic::kMixedBfloat16 || fusion_ == nullptr) return;
  std::vector<bool> by_product(plan_.values(), false), otherwise(plan_.values(), false);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan_.graph.nodes.size()); ++i) {
    if (!plan_.live(i)) continue;
    const Node& n = node(i);
    for (std::size_t k = 0; k < n.inputs.size(); ++k) {
      const auto value = static_cast<std::size_t>(bound_.root(plan_.value(n.inputs[k])));
      if (n.op->needs_shape_only(k)) continue;
      if (!takes_bfloat16(i))
        otherwise[value] = true;
      else if (n.op->has(OpFlags::kMatrixProduct))
        by_product[value] = true;
    }
  }
  for (ValueRef out : plan_.graph.outputs)
    otherwise[static_cast<std::size_t>(bound_.root(plan_.value(out)))] = true;
  for (std::size_t v = 0; v < plan_.values(); ++v) {
    const std::int32_t i = plan_.producer[v];
    const bool writes =
        node(i).op->has(OpFlags::kElementwise) || node(i).op->has(OpFlags::kMatrixProduct);
    bound_.narrow_[v] = by_product[v] && !otherwise[v] && plan_.live(i) && writes &&
                        takes_bfloat16(i) && absorbed_into_[static_cast<std::size_t>(i)] < 0 &&
                        bound_.type(static_cast<std::int32_t>(v)).dtype == DType::kFloat32;
  }
}

}  // namespace cairn
