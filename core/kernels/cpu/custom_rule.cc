// A program's own update rule, run block by block over the elements of rows: what lies between its
// inputs and its results stays in the first-level cache.
#include "core/graph/custom_rule.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/graph/op_def.h"
#include "core/kernels/cpu/elementwise.h"
#include "core/kernels/cpu/rule_pass.h"

namespace cairn {

// Values are numbered as their nodes. Scalars are computed once per update and copied into every
// place of a block, so that they can be operands like any other value.
struct RuleProgram {
  struct Step {
    BlockOp op;
    int operands[3];
    int made;
    std::size_t width;  // bytes of an element of the result
  };
  struct Constant {
    int made;
    Tensor value;
  };
  std::vector<int> arguments;  // the values that are value, gradient, learning_rate, t and slots
  std::vector<Constant> constants;
  std::vector<Step> scalars, steps;
  std::vector<int> outputs;  // value, slots
  std::size_t values = 0;
};

namespace {

constexpr std::int64_t kRuleBlock = 256;  // elements: all values of a usual rule are 10 to 30 KB
constexpr std::size_t kValueBytes = static_cast<std::size_t>(kRuleBlock) * 8;
constexpr std::size_t kValue = 0, kGradient = 1, kRate = 2, kT = 3, kSlots = 4;

void fill(std::byte* block, std::size_t width) {
  for (std::int64_t i = 1; i < kRuleBlock; ++i)
    std::memcpy(block + static_cast<std::size_t>(i) * width, block, width);
}

// One update of some rows.
class CustomPass {
 public:
  CustomPass(const RuleProgram& program, const RuleInputs& inputs, const Pass& pass)
      : program_(program), pass_(pass), slots_(program.outputs.size() - 1) {
    thread_local std::vector<std::byte> memory;  // one for all rules of a thread
    memory.resize(std::max(memory.size(), program.values * kValueBytes));
    memory_ = memory.data();
    for (std::size_t i = 0; i < program.values; ++i) at_.push_back(memory_ + i * kValueBytes);
    set_scalar(kRate, inputs.learning_rate);
    set_scalar(kT, static_cast<float>(inputs.t));
    for (const RuleProgram::Constant& constant : program.constants) {
      std::memcpy(own(constant.made), constant.value.raw(), constant.value.bytes());
      fill(own(constant.made), constant.value.bytes());
    }
    for (const RuleProgram::Step& step : program.scalars) {
      run(step, 1);
      fill(own(step.made), step.width);
    }
  }

  void run() {
    const std::int64_t whole =
        std::max<std::int64_t>(1, kRuleBlock / std::max<std::int64_t>(1, pass_.dim));
    for (std::size_t i = 0; i < pass_.count; i += static_cast<std::size_t>(whole)) {
      const std::size_t rows = std::min(static_cast<std::size_t>(whole), pass_.count - i);
      if (rows > 1) {
        run_rows(i, rows);
      } else {
        for (std::int64_t j = 0; j < pass_.dim; j += kRuleBlock)
          run_part(i, j, std::min(kRuleBlock, pass_.dim - j));
      }
    }
  }

 private:
  std::byte* own(int value) { return memory_ + static_cast<std::size_t>(value) * kValueBytes; }
  void set_scalar(std::size_t argument, float number) {
    const int value = program_.arguments[argument];
    if (value < 0) return;
    std::fill_n(reinterpret_cast<float*>(own(value)), kRuleBlock, number);
  }
  void run(const RuleProgram::Step& step, std::int64_t n) {
    const std::byte* in[3];
    for (int k = 0; k < 3; ++k)
      in[k] = step.operands[k] < 0 ? nullptr : at_[static_cast<std::size_t>(step.operands[k])];
    step.op(in[0], in[1], in[2], own(step.made), static_cast<std::size_t>(n));
  }

  float* row(std::size_t i) const {
    const std::int64_t number =
        pass_.numbers != nullptr ? pass_.numbers[i] : static_cast<std::int64_t>(i);
    return pass_.base + number * pass_.stride;
  }
  // The value, or slot k - 1, of a row.
  float* part(std::size_t i, std::size_t k) const {
    return row(i) + static_cast<std::int64_t>(k) * pass_.slot_offset;
  }
  // The argument that is the value (k = 0) or slot k - 1; below 0: the rule does not look at it.
  int argument(std::size_t k) const { return program_.arguments[k == 0 ? kValue : kSlots + k - 1]; }

  void steps(std::int64_t n) {
    for (const RuleProgram::Step& step : program_.steps) run(step, n);
  }

  // Several short rows, whose elements are laid side by side.
  void run_rows(std::size_t first, std::size_t rows) {
    const std::size_t bytes = static_cast<std::size_t>(pass_.dim) * sizeof(float);
    for (std::size_t k = 0; k <= slots_; ++k) {
      if (argument(k) < 0) continue;
      std::byte* to = own(argument(k));
      at_[static_cast<std::size_t>(argument(k))] = to;
      for (std::size_t i = 0; i < rows; ++i, to += bytes)
        std::memcpy(to, part(first + i, k), bytes);
    }
    set_gradient(static_cast<std::int64_t>(first) * pass_.dim);
    steps(static_cast<std::int64_t>(rows) * pass_.dim);
    for (std::size_t k = 0; k <= slots_; ++k) {
      const std::byte* from = made(k);
      for (std::size_t i = 0; i < rows; ++i, from += bytes)
        std::memcpy(part(first + i, k), from, bytes);
    }
  }

  // n elements of one row, read where they lie.
  void run_part(std::size_t i, std::int64_t j, std::int64_t n) {
    for (std::size_t k = 0; k <= slots_; ++k)
      if (argument(k) >= 0)
        at_[static_cast<std::size_t>(argument(k))] =
            reinterpret_cast<const std::byte*>(part(i, k) + j);
    set_gradient(static_cast<std::int64_t>(i) * pass_.dim + j);
    steps(n);
    // A result may be another slot's old value, so everything is kept before anything is written.
    for (std::size_t k = 0; k <= slots_; ++k) keep(k, n);
    for (std::size_t k = 0; k <= slots_; ++k)
      std::memcpy(part(i, k) + j, made(k), static_cast<std::size_t>(n) * sizeof(float));
  }

  void set_gradient(std::int64_t from) {
    if (program_.arguments[kGradient] >= 0)
      at_[static_cast<std::size_t>(program_.arguments[kGradient])] =
          reinterpret_cast<const std::byte*>(pass_.values + from);
  }
  const std::byte* made(std::size_t k) const {
    return at_[static_cast<std::size_t>(program_.outputs[k])];
  }
  void keep(std::size_t k, std::int64_t n) {
    const int value = program_.outputs[k];
    if (made(k) == own(value)) return;
    std::memcpy(own(value), made(k), static_cast<std::size_t>(n) * sizeof(float));
    at_[static_cast<std::size_t>(value)] = own(value);
  }

  const RuleProgram& program_;
  const Pass& pass_;
  std::size_t slots_;
  std::byte* memory_;
  std::vector<const std::byte*> at_;  // where each value is read
};

}  // namespace

std::shared_ptr<const RuleProgram> make_rule_program(const Graph& graph) {
  auto made = std::make_shared<RuleProgram>();
  made->values = graph.nodes.size();
  made->arguments.assign(graph.arguments.size(), -1);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const int value = static_cast<int>(i);
    if (node.op->effect == Effect::kArgument) {
      made->arguments[static_cast<std::size_t>(node.attributes.get<std::int64_t>("index"))] = value;
    } else if (node.op->has(OpFlags::kConstant)) {
      made->constants.push_back({value, node.attributes.get<Tensor>("value")});
    } else {
      RuleProgram::Step step{nullptr, {-1, -1, -1}, value, dtype_bytes(node.outputs[0].dtype)};
      std::vector<DType> types;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        step.operands[k] = node.inputs[k].node;
        types.push_back(graph.type(node.inputs[k]).dtype);
      }
      step.op = find_block_op(node.op->name, types, node.outputs[0].dtype);
      (node.outputs[0].shape.rank() == 0 ? made->scalars : made->steps).push_back(step);
    }
  }
  for (const ValueRef output : graph.outputs) made->outputs.push_back(output.node);
  return made;
}

std::span<const RowPass> custom_passes() {
  static constexpr RowPass kPasses[] = {
      {RuleKind::kCustom, [](const UpdateRule& rule, const RuleInputs& inputs, const Pass& pass) {
         CustomPass(*operations_of(rule).program(), inputs, pass).run();
       }}};
  return kPasses;
}

}  // namespace cairn
