// Binds a plan to concrete shapes and a device: the steps in which a BoundPlan is made.
#pragma once
#include <memory>
#include <vector>

#include "core/exec/bound_plan.h"

namespace cairn {

// An attribute that is a number.
inline std::int32_t number(const Node& node, std::string_view name) {
  return static_cast<std::int32_t>(node.attributes.get<std::int64_t>(name));
}

class Binder {
 public:
  Binder(BoundPlan& bound, const RunInputs& inputs, Device& device)
      : bound_(bound),
        plan_(bound.plan()),
        inputs_(inputs),
        device_(device),
        fusion_(device.fusion()),
        on_host_(device.memory() == Device::Memory::kHost) {}
  void bind();

 private:
  const Node& node(std::int32_t i) const { return plan_.graph.nodes[static_cast<std::size_t>(i)]; }
  const TensorType& input_type(const Node& n, std::size_t i) const {
    return bound_.type(plan_.value(n.inputs[i]));
  }
  std::vector<TensorType> input_types(const Node& n) const;
  std::vector<TensorType> stored_input_types(const Node& n) const;

  void infer_all();
  std::vector<TensorType> infer(std::int32_t i) const;
  void check_unknown_dims(const Node& n) const;
  void find_roots();
  bool gives_way(std::int32_t value) const;

  void emit_wave(const Wave& wave);
  void find_consumers();
  void mark_absorbed(const Wave& wave);
  bool takes_bfloat16(std::int32_t i) const;
  bool makes_narrow(std::int32_t i) const;
  bool reads_rounded(const Node& n) const;
  bool is_rounded_bias(std::int32_t i, std::size_t k) const;
  void find_narrow();
  void emit(std::int32_t i);
  void emit_fused(std::int32_t i);
  void add_to_tree(std::int32_t i, FusedTree& tree, Instruction& made) const;
  void emit_kernel(std::int32_t i);
  void find_rows_into();
  void place_parts(std::int32_t join);
  bool is_lookup_of(std::int32_t value, std::int64_t run) const;
  bool makes_rows_of(std::int32_t value, std::int64_t run, std::int32_t whole) const;
  void read_within(std::int32_t slice);
  bool lies_within(std::int32_t value) const;
  void find_rows_within(const Wave& wave);
  std::int32_t only_update(std::int32_t slice, const Wave& wave) const;
  void emit_reduction(std::int32_t i);

  struct Lives {
    std::vector<Interval> values, sums;
  };
  Lives find_lives() const;
  void place();
  bool is_copied_in(std::int32_t value) const;

  BoundPlan& bound_;
  const Plan& plan_;
  const RunInputs& inputs_;
  Device& device_;
  Fusion* const fusion_;  // nullptr: every node has a kernel of its own
  const bool on_host_;
  BoundWave* into_ = nullptr;
  std::size_t updates_ = 0;  // so far
  // by node: something is done for it in a run
  std::vector<bool> runs_;
  // by value: the node that is its only reader, else -1
  std::vector<std::int32_t> consumer_;
  // by node: the node whose instruction computes it too; -1: none
  std::vector<std::int32_t> absorbed_into_;
  // by node: the matrix product that its instruction begins with; -1: none
  std::vector<std::int32_t> product_of_;
  // by node: how many nodes its instruction computes so far
  std::vector<std::int32_t> fused_nodes_;
  std::vector<bool> in_wave_;
};

}  // namespace cairn
