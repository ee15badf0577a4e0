// How a gradient changes a variable's rows and the slots beside them.
//
// A rule has a kind and constants, fixed when the graph is traced; the learning rate is evaluated
// in the step's graph and travels with each push. A *row rule* touches the rows it is given; a
// *table rule* takes every other row's gradient as zero, decays its slots and mostly moves it, so
// each shard gets a push, with rows or without. Where the reference computes one way in
// tf.keras.optimizers.legacy and the other in tf.keras.optimizers, there are both kinds.
//   Sources  Momentum: Sutskever et al., ICML 2013. Adagrad: Duchi, Hazan, Singer, JMLR 12 (2011);
//            one accumulator a row: Gupta, Bengio, Weston, JMLR 15 (2014). RMSProp: Tieleman,
//            Hinton, Coursera lecture 6.5 (2012); centered: Graves, arXiv:1308.0850. Adam, Adamax:
//            Kingma, Ba, ICLR 2015 (with the reference's "epsilon hat"); on given rows only
//            ("lazy"): the same, as TensorFlow Addons' LazyAdam has it. AMSGrad: Reddi, Kale,
//            Kumar, ICLR 2018. Nadam: Dozat, ICLR workshop 2016. Adadelta: Zeiler, arXiv:1212.5701.
//            FTRL-proximal: McMahan et al., KDD 2013. Lion: Chen et al., arXiv:2302.06675.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace cairn {

// The numbers are those of the wire format and of checkpoints; never renumber. Each kind's
// constants and slots, and which rows it goes to, are its entry in core/graph/rules/rule_def.cc;
// "Table" in a name says that the kind is a table rule, where a row rule of the same arithmetic
// exists. How many slots a kind has, and how wide they are, does not depend on its constants; a
// kCustom rule brings its own list of slots. A `share` is the part of a new gradient that enters a
// moving average, 0 meaning 1 - beta (or 1 - rho) in float32: the reference's newer optimizers
// round it differently.
enum class RuleKind : std::uint8_t {
  kAssign = 0,     // row = value
  kAssignAdd = 1,  // row += value
  kAssignSub = 2,  // row -= value
  kSgd = 3,
  kMomentum = 4,
  kAdagrad = 5,
  kAdam = 6,      // table rule
  kLazyAdam = 7,  // as Adam, given rows only
  kFtrl = 8,
  kMomentumTable = 9,
  kRowwiseAdagrad = 10,   // one accumulator for a row
  kRmsProp = 11,          // table rule that moves given rows only
  kRmsPropCentered = 12,  // the same
  kRmsPropMomentum = 13,  // epsilon stands under the root
  kRmsPropCenteredMomentum = 14,
  kRmsPropMomentumTable = 15,
  kRmsPropCenteredMomentumTable = 16,
  kAmsgrad = 17,  // table rule
  kAdamax = 18,
  kAdamaxTable = 19,
  kNadam = 20,  // table rule
  kAdadelta = 21,
  kAdadeltaTable = 22,
  kFtrlTable = 23,  // a row never named is made anew from its slots, so set to 0
  // Assignments, of numbers. Applied on the shard as the others are, so that no change by another
  // closure is lost between reading a row and writing it.
  kAssignMul = 24,  // row *= value
  kAssignDiv = 25,  // row /= value; float32 only
  kAssignMin = 26,  // row = min(row, value), element by element
  kAssignMax = 27,  // row = max(row, value)
  kCustom = 28,     // a program's own operations (core/graph/custom_rule.h) -> the slots it names
  kLion = 29,
  kLionTable = 30,
};
inline constexpr int kRuleKindCount = 31;

class CustomRule;  // core/graph/custom_rule.h

struct UpdateRule {
  static constexpr int kConstants = 6;
  RuleKind kind = RuleKind::kAssign;
  std::array<float, kConstants> constants{};
  // A kCustom rule's slots and operations. An update sent to rows omits them: the rows keep them.
  std::shared_ptr<const CustomRule> custom = nullptr;
  bool operator==(const UpdateRule&) const = default;
};

// A rule with its constants by name, in the order of its entry in core/graph/rules/rule_def.cc. A
// constant that is missing or of another name fails a CAIRN_CHECK; ranges are verify_rule()'s.
UpdateRule make_rule(RuleKind kind,
                     std::initializer_list<std::pair<std::string_view, float>> constants);

struct SlotSpec {
  std::string_view name;
  float initial_value;
};

std::string_view rule_name(RuleKind kind);
// The name of the rule's kind, or for a custom rule the name that the program gave it.
std::string_view rule_name(const UpdateRule& rule);
// The names are valid as long as the rule.
std::vector<SlotSpec> rule_slots(const UpdateRule& rule);
// Whether rows must have been given the rule before it is applied to them, since they keep its
// slots or its operations. A variable has one such rule at most.
bool is_kept(const UpdateRule& rule);
// Whether rows that were kept under one rule have the slots of the other.
bool same_slots(const UpdateRule& a, const UpdateRule& b);
// Elements of each of the kind's slots beside a row of `dim` parameters.
std::int64_t slot_width(RuleKind kind, std::int64_t dim);
bool is_table_rule(RuleKind kind);
// Whether an update under the rule goes to every part of a variable, even to those where it has no
// row: it is a table rule, or its arithmetic counts updates (RuleInputs::t), which must not depend
// on how the variable is cut.
bool reaches_every_part(RuleKind kind);
// Whether even rows whose slots have their initial values change where no gradient comes.
bool moves_untouched_rows(RuleKind kind);
// The assignments change no slot and mix freely with any optimizer; a variable has at most one rule
// that has slots.
bool is_assignment(RuleKind kind);
// How rows of equal ids become the one row that is sent: gradients and what is added are summed, of
// assigned rows the last one counts, factors and divisors are multiplied, and of bounds the lowest
// or the highest is taken. Applied one after another, they would come to the same.
enum class EqualIds : std::uint8_t { kSum, kLast, kProduct, kMin, kMax };
EqualIds equal_ids(RuleKind kind);
// An optimizer's count of its steps: adds as kAssignAdd does. A rule of its own, since a step that
// only counts itself may overlap with others, where one that assigns may not (Graph::assigns).
inline UpdateRule counter_rule() { return {RuleKind::kAssignAdd, {1}}; }
// Rows go for good (Variable::evict()): an assignment whose values, zeros, count for nothing.
inline UpdateRule eviction_rule() { return {RuleKind::kAssign, {1}}; }
// InvalidArgument: an unknown kind, or constants out of range. For rules that came over a wire.
void verify_rule(const UpdateRule& rule);
// InvalidArgument: NaN, infinite or negative; 0 under FTRL, which divides by it. Assignments have
// no use for a rate and take any.
void verify_learning_rate(const UpdateRule& rule, float learning_rate);

// Where the rows of one part of a variable lie in memory, in elements of its dtype. Parameter j of
// row r is base[r * row_stride + j], slot k of it base[r * row_stride + (k + 1) * slot_offset + j];
// this says both "slots beside the row" (slot_offset = dim) and "slots in planes of their own"
// (slot_offset = all parameters), which is better for variables read whole.
struct RowBlock {
  DType dtype = DType::kFloat32;
  std::byte* base = nullptr;
  std::int64_t rows = 0;
  std::int64_t dim = 0;
  std::int64_t row_stride = 0;
  std::int64_t slot_offset = 0;
};

struct RuleInputs {
  float learning_rate = 0;
  // how many updates this variable has had on this shard, this one included; for bias corrections
  std::int64_t t = 1;
};

// Applies `rule` to rows `row_numbers` (distinct, each in [0, block.rows)) with the values beside
// them, [n, dim] in the block's dtype. Optimizers want float32; assignments serve every dtype of 1,
// 4 or 8 bytes an element.
//   A table rule works on every row of the block; rows not named have gradient zero.
//   A row's result depends on that row alone, to the bit: not on which others come with it, nor on
//   the processor's instruction set.
//   Thread  the block's owner.
//   Cost  one pass over the rows named, prefetched ahead (a table rule: over the block).
void apply_rule(const UpdateRule& rule, const RuleInputs& inputs, const RowBlock& block,
                std::span<const std::int64_t> row_numbers, const std::byte* values);
// The same for all rows of the block in order: the dense gradient.
void apply_rule_dense(const UpdateRule& rule, const RuleInputs& inputs, const RowBlock& block,
                      const std::byte* values);

}  // namespace cairn
