// custom_rule(): an update rule of a program's own, made of elementwise operations:
//
//   // Lion: Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023.
//   const UpdateRule lion =
//       custom_rule("lion", {{"momentum", 0}}, [](const RuleInput& in) -> RuleOutput {
//         const Array& m = in.slots[0];
//         return {in.value - in.learning_rate * sign(0.9f * m + 0.1f * in.gradient),
//                 {0.99f * m + 0.01f * in.gradient}};
//       });
//   nn::CustomOptimizer optimizer({.rule = lion, .learning_rate = 1e-4f});
//
// The function is called once, while it is recorded. What it recorded goes where the variable's
// rows are, and is applied there, under every strategy: a parameter server, which has never seen
// the program, applies it as it applies Adam, exactly once. It is a row rule: with sparse gradients
// only the given rows and their slots change.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/update_rule.h"

namespace cairn {

struct Graph;

// The arguments of a rule. `value`, `gradient` and each slot are float32 [n], for the same n
// elements of a variable; the rule does not know their place in it. The rest are float32 scalars.
struct RuleInput {
  Array value, gradient;
  Array learning_rate;
  // How often the variable has been updated, this time included: for bias corrections. On a
  // parameter server, by all workers.
  Array t;
  std::vector<Array> slots;
};
// The new value and slots, each [n] or a scalar; as many slots as RuleInput has.
struct RuleOutput {
  Array value;
  std::vector<Array> slots = {};
};
using RuleFunction = std::function<RuleOutput(const RuleInput& in)>;

// Numbers beside each parameter that the rule keeps, with the value at which all begin.
struct RuleSlot {
  std::string name;
  float initial_value = 0;
};

// A rule of kind RuleKind::kCustom. Rules of equal names, slots and operations are equal. The name
// appears in messages and in a checkpoint's manifest; a process that reads the manifest, and does
// not have the rule, calls it "custom".
//   Errors  InvalidArgument: no name, or one of more than 100 bytes; more than kSlotsMax slots, or
//           two of one name; the function returns another number of slots, or something that is not
//           float32; it uses an operation that looks at more than one element at once, a random
//           one, a variable, an array of another function, or more than kOperationsMax operations,
//           arguments and constants.
//   Thread  any.
UpdateRule custom_rule(const std::string& name, const std::vector<RuleSlot>& slots,
                       const RuleFunction& function);

struct RuleProgram;  // the operations as the processor runs them

// The rule behind an UpdateRule of kind kCustom. Equal rules share one object, so that rules are
// compared by address.
class CustomRule {
 public:
  static constexpr std::size_t kSlotsMax = 8, kOperationsMax = 64, kGraphBytesMax = 64 << 10;

  // The rule of these operations, as they came over a wire. Its graph takes value, gradient,
  // learning_rate, t and the slots, and yields the value and the slots.
  //   Errors  InvalidArgument, as custom_rule().
  static std::shared_ptr<const CustomRule> of(const std::string& name, std::vector<RuleSlot> slots,
                                              std::span<const std::byte> graph);
  // The slots of a checkpoint whose rule is not known: rows keep them until it is.
  static std::shared_ptr<const CustomRule> of_slots(const std::vector<std::string>& names);

  const std::string& name() const { return name_; }
  const std::vector<RuleSlot>& slots() const { return slots_; }
  // Null for a rule made by of_slots().
  const RuleProgram* program() const { return program_.get(); }
  const Graph& graph() const { return *graph_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  friend struct CustomRules;
  CustomRule() = default;
  std::string name_;
  std::vector<RuleSlot> slots_;
  std::vector<std::byte> bytes_;
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const RuleProgram> program_;
};

// A rule as a checkpoint has it, whose operations are the program's: one of kCustom gets its saved
// slots, others stay as they are.
//   Errors  DataLoss: more than kSlotsMax.
UpdateRule with_saved_slots(UpdateRule rule, const std::vector<std::string>& names);
// Whether a custom rule can be applied; all others can.
bool has_operations(const UpdateRule& rule);
// The custom rule with its operations.
//   Errors  InvalidArgument: it came without them.
const CustomRule& operations_of(const UpdateRule& rule);

// Implemented by the CPU's kernels (core/kernels/cpu/custom_rule.cc).
//   Errors  InvalidArgument: an operation has no kernel for its dtypes.
std::shared_ptr<const RuleProgram> make_rule_program(const Graph& graph);

}  // namespace cairn
