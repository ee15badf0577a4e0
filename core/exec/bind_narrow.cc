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

// Whether the node makes a value of float32 of its own, and the device can make it in bfloat16.
bool Binder::makes_narrow(std::int32_t i) const {
  const Node& n = node(i);
  if (n.outputs.empty() || absorbed_into_[static_cast<std::size_t>(i)] >= 0) return false;
  return bound_.type(plan_.value({i, 0})).dtype == DType::kFloat32 &&
         (reads_rounded(n) || (takes_bfloat16(i) && device_.makes_bfloat16(*n.op)));
}

// A variable that is read whole: it is rounded where it is read.
bool Binder::reads_rounded(const Node& n) const {
  return n.op->effect == Effect::kRead && n.inputs.empty() && device_.row_kernels() != nullptr;
}

// Whether the node adds its input `k` to each row of a product that is computed inside it, and
// whose result is rounded: then the product takes it, and wants it rounded as well.
bool Binder::is_rounded_bias(std::int32_t i, std::size_t k) const {
  const Node& n = node(i);
  if (!n.op->has(OpFlags::kAddition) || input_type(n, k).shape.rank() != 1) return false;
  const auto other = static_cast<std::size_t>(n.inputs[1 - k].node);
  if (absorbed_into_[other] != i || product_of_[other] != static_cast<std::int32_t>(other))
    return false;
  std::int32_t top = i;
  while (absorbed_into_[static_cast<std::size_t>(top)] >= 0)
    top = absorbed_into_[static_cast<std::size_t>(top)];
  return bound_.narrow_[static_cast<std::size_t>(plan_.value({top, 0}))];
}

// Under kMixedBfloat16 a value is kept as bfloat16 if some product reads it, which would round it
// anyway, and all its other readers can take bfloat16. What only moves elements counts as those
// that read its result. Nodes are visited from the last to the first, so that all readers of a
// value come before it.
void Binder::find_narrow() {
  bound_.narrow_.assign(plan_.values(), false);
  if (plan_.options.products != Arithmetic::kMixedBfloat16 || fusion_ == nullptr) return;
  std::vector<bool> rounded(plan_.values(), false), otherwise(plan_.values(), false);
  const auto made_by = [&](std::int32_t i) {
    return static_cast<std::size_t>(plan_.value_base[static_cast<std::size_t>(i)]);
  };
  for (ValueRef out : plan_.graph.outputs)
    otherwise[static_cast<std::size_t>(bound_.root(plan_.value(out)))] = true;
  for (auto i = static_cast<std::int32_t>(plan_.graph.nodes.size()) - 1; i >= 0; --i) {
    if (!runs_[static_cast<std::size_t>(i)]) continue;
    const Node& n = node(i);
    const bool takes = takes_bfloat16(i);
    const bool narrow = makes_narrow(i) && rounded[made_by(i)] && !otherwise[made_by(i)];
    if (narrow) bound_.narrow_[made_by(i)] = true;
    const bool moves = n.op->has(OpFlags::kJoin) || n.op->has(OpFlags::kSlice);
    const bool multiplies = n.op->has(OpFlags::kMatrixProduct) || n.op->has(OpFlags::kOfProducts);
    for (std::size_t k = 0; k < n.inputs.size(); ++k) {
      if (n.op->needs_shape_only(k)) continue;
      const auto read = static_cast<std::size_t>(bound_.root(plan_.value(n.inputs[k])));
      if (!takes || (moves && otherwise[made_by(i)]))
        otherwise[read] = true;
      else if (multiplies || (moves && narrow) || is_rounded_bias(i, k))
        rounded[read] = true;
    }
  }
}

}  // namespace cairn
