#include "core/graph/custom_rule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/graph/function.h"
#include "core/graph/op_def.h"

namespace cairn {
namespace {

constexpr std::size_t kNameMax = 100;
constexpr std::size_t kScalars = 2;  // learning_rate and t, behind value and gradient

// Reading a rule reads a graph, and reading a graph reads the rules in it: without this guard a
// message could nest them until the stack overflows.
thread_local bool reading = false;
class [[nodiscard]] Reading {
 public:
  Reading() {
    if (std::exchange(reading, true))
      throw InvalidArgumentError("an update rule within the operations of another");
  }
  ~Reading() { reading = false; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
};

void verify_names(const std::string& name, const std::vector<RuleSlot>& slots) {
  if (name.empty() || name.size() > kNameMax)
    throw InvalidArgumentError(
        str("a custom rule's name has 1 to ", kNameMax, " bytes, not ", name.size()));
  if (slots.size() > CustomRule::kSlotsMax)
    throw InvalidArgumentError(str("custom rule \"", name, "\" has ", slots.size(),
                                   " slots; at most ", CustomRule::kSlotsMax));
  std::set<std::string> names;
  for (const RuleSlot& slot : slots) {
    if (slot.name.empty() || slot.name.size() > kNameMax || !names.insert(slot.name).second)
      throw InvalidArgumentError(str("custom rule \"", name, "\": a slot is named \"", slot.name,
                                     "\"; each needs a name of its own of 1 to ", kNameMax,
                                     " bytes"));
    if (!std::isfinite(slot.initial_value))
      throw InvalidArgumentError(str("custom rule \"", name, "\": slot \"", slot.name,
                                     "\" begins at ", slot.initial_value, ", not finite"));
  }
}

TensorType argument_type(std::size_t i) {
  const bool scalar = i >= 2 && i < 2 + kScalars;
  return {DType::kFloat32, scalar ? Shape{} : Shape{Shape::kUnknown}};
}

// Whether the node computes element i from element i of each of its inputs, or is a scalar.
bool is_by_element(const Node& node) {
  if (node.outputs.size() != 1) return false;
  const Shape& shape = node.outputs[0].shape;
  if (shape.rank() != 0 && shape != Shape{Shape::kUnknown}) return false;
  if (node.op->effect == Effect::kArgument) return true;
  if (node.op->has(OpFlags::kConstant)) return shape.rank() == 0;
  return node.op->has(OpFlags::kElementwise);
}

void verify_graph(const std::string& name, std::size_t slots, const Graph& graph) {
  auto fail = [&](const auto&... why) {
    throw InvalidArgumentError(str("custom rule \"", name, "\": ", why...));
  };
  if (graph.nodes.size() > CustomRule::kOperationsMax)
    fail("it is made of ", graph.nodes.size(), " operations; at most ", CustomRule::kOperationsMax);
  if (!graph.iterators.empty() || !graph.variables.empty())
    fail("it reads a variable or an iterator; it has what it is given alone");
  bool fits = graph.arguments.size() == 2 + kScalars + slots;
  for (std::size_t i = 0; fits && i < graph.arguments.size(); ++i)
    fits = graph.arguments[i] == argument_type(i);
  if (!fits) fail("its operations do not take value, gradient, learning_rate, t and its slots");
  for (const Node& node : graph.nodes)
    if (!is_by_element(node))
      fail("\"", node.op->name, "\" gives ",
           node.outputs.empty() ? "nothing" : node.outputs[0].to_string(),
           ": a rule is made of operations that compute each element from the same element of what "
           "they are given, and of scalars");
  if (graph.outputs.size() != 1 + slots)
    fail("it returns ", graph.outputs.size(), " arrays for its value and ", slots, " slots");
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    if (const TensorType& type = graph.type(graph.outputs[i]); type.dtype != DType::kFloat32)
      fail(i == 0 ? str("the value") : str("slot ", i - 1), " becomes ", type.to_string(),
           "; float32 is wanted");
}

std::string key_of(const std::string& name, const std::vector<RuleSlot>& slots,
                   std::span<const std::byte> graph) {
  std::string key;
  auto append = [&key](const void* data, std::size_t bytes) {
    key.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    key.append(static_cast<const char*>(data), bytes);
  };
  append(name.data(), name.size());
  for (const RuleSlot& slot : slots) {
    append(slot.name.data(), slot.name.size());
    append(&slot.initial_value, sizeof slot.initial_value);
  }
  append(graph.data(), graph.size());
  return key;
}

}  // namespace

// All custom rules that are in use in this process, so that equal ones are one object.
struct CustomRules {
  static CustomRules& all() {
    static CustomRules& rules = *new CustomRules;  // outlives all who hold one
    return rules;
  }

  std::shared_ptr<const CustomRule> find(const std::string& key) {
    std::lock_guard hold(mutex);
    const auto at = held.find(key);
    return at == held.end() ? nullptr : at->second.lock();
  }

  // If another thread has entered an equal rule meanwhile, that one is returned.
  std::shared_ptr<const CustomRule> enter(const std::string& key, CustomRule made) {
    std::lock_guard hold(mutex);
    std::weak_ptr<const CustomRule>& place = held[key];
    if (auto there = place.lock()) return there;
    std::shared_ptr<const CustomRule> entered(new CustomRule(std::move(made)),
                                              [this, key](const CustomRule* gone) {
                                                forget(key);
                                                delete gone;
                                              });
    place = entered;
    return entered;
  }

  // Leaves the entry alone if an equal rule has been entered since.
  void forget(const std::string& key) {
    std::lock_guard hold(mutex);
    const auto at = held.find(key);
    if (at != held.end() && at->second.expired()) held.erase(at);
  }

  static CustomRule make(std::string name, std::vector<RuleSlot> slots,
                         std::vector<std::byte> bytes, std::shared_ptr<const Graph> graph) {
    CustomRule made;
    if (graph != nullptr) made.program_ = make_rule_program(*graph);
    made.name_ = std::move(name);
    made.slots_ = std::move(slots);
    made.bytes_ = std::move(bytes);
    made.graph_ = std::move(graph);
    return made;
  }

  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const CustomRule>> held;
};

std::shared_ptr<const CustomRule> CustomRule::of(const std::string& name,
                                                 std::vector<RuleSlot> slots,
                                                 std::span<const std::byte> graph) {
  verify_names(name, slots);
  if (graph.size() > kGraphBytesMax)
    throw InvalidArgumentError(str("custom rule \"", name, "\": its operations take ", graph.size(),
                                   " bytes; at most ", kGraphBytesMax));
  const std::string key = key_of(name, slots, graph);
  if (auto there = CustomRules::all().find(key)) return there;
  const Reading once;
  auto parsed = std::make_shared<const Graph>(parse_graph(graph));
  verify_graph(name, slots.size(), *parsed);
  return CustomRules::all().enter(
      key, CustomRules::make(name, std::move(slots), {graph.begin(), graph.end()}, parsed));
}

std::shared_ptr<const CustomRule> CustomRule::of_slots(const std::vector<std::string>& names) {
  std::vector<RuleSlot> slots;
  for (const std::string& name : names) slots.push_back({name, 0});
  const std::string name(rule_name(RuleKind::kCustom));
  const std::string key = key_of(name, slots, {});
  if (auto there = CustomRules::all().find(key)) return there;
  return CustomRules::all().enter(key, CustomRules::make(name, std::move(slots), {}, nullptr));
}

UpdateRule with_saved_slots(UpdateRule rule, const std::vector<std::string>& names) {
  if (rule.kind != RuleKind::kCustom) return rule;
  if (names.size() > CustomRule::kSlotsMax)
    throw DataLossError(
        str("a custom update rule with ", names.size(), " slots; at most ", CustomRule::kSlotsMax));
  rule.custom = CustomRule::of_slots(names);
  return rule;
}

UpdateRule custom_rule(const std::string& name, const std::vector<RuleSlot>& slots,
                       const RuleFunction& function) {
  verify_names(name, slots);
  std::vector<SignatureEntry> signature;
  for (std::size_t i = 0; i < 2 + kScalars + slots.size(); ++i)
    signature.emplace_back(argument_type(i));
  const ConcreteFunction recorded = trace(
      [&](const std::vector<TraceArgument>& given) {
        std::vector<Array> in;
        for (const TraceArgument& one : given) in.push_back(std::get<Array>(one));
        const RuleOutput out =
            function({in[0], in[1], in[2], in[3], {in.begin() + 2 + kScalars, in.end()}});
        if (out.slots.size() != slots.size())
          throw InvalidArgumentError(str("custom rule \"", name, "\" returns ", out.slots.size(),
                                         " slots; it has ", slots.size()));
        Outputs all{{"value", out.value}};
        for (std::size_t i = 0; i < slots.size(); ++i)
          all.emplace_back(slots[i].name, out.slots[i]);
        for (const auto& [what, array] : all)
          if (!array.defined())
            throw InvalidArgumentError(
                str("custom rule \"", name, "\" returns no array for \"", what, '"'));
        return all;
      },
      signature);
  UpdateRule rule{.kind = RuleKind::kCustom};
  rule.custom = CustomRule::of(name, slots, recorded.bytes);
  return rule;
}

}  // namespace cairn
