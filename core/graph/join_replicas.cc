#include "core/graph/join_replicas.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

const std::string& variable_name(const Graph& graph, const Node& node) {
  const auto variable = node.attributes.get<std::int64_t>("variable");
  return graph.variables[static_cast<std::size_t>(variable)].name;
}

// Where the replica needs the others, in order.
std::vector<std::string> meetings_of(const Graph& graph) {
  std::vector<std::string> all;
  for (const Node& node : graph.nodes) {
    if (node.op->effect == Effect::kAllReduce) {
      std::string text = str("all_reduce ", node.attributes.get<std::string>("reduction"));
      for (const TensorType& type : node.outputs) text += " " + type.to_string();
      all.push_back(std::move(text));
    } else if (is_update(node)) {
      all.push_back(str("an update of \"", variable_name(graph, node), "\", ",
                        node.attributes.get_or<std::string>("shares", "its own")));
    }
  }
  return all;
}

// Records the replicas' graphs again, side by side, as one trace: up to where they meet one replica
// after another, and there all of them together. Lowering shares what is equal.
class Joiner {
 public:
  Joiner(const std::vector<ReplicaPart>& parts, JoinedOutputs outputs)
      : parts_(parts), outputs_(outputs), next_(parts.size(), 0), values_(parts.size()) {}

  std::vector<SignatureEntry> signature() const {
    std::vector<SignatureEntry> signature;
    for (const ReplicaPart& part : parts_)
      for (std::size_t i = 0; i < part.arguments.size(); ++i) {
        if (signature.size() <= part.arguments[i]) signature.resize(part.arguments[i] + 1);
        signature[part.arguments[i]] = part.function->graph.arguments[i];
      }
    for (const ElementSpec& spec : graph(0).iterators) signature.emplace_back(spec);
    return signature;
  }

  Outputs operator()(const std::vector<TraceArgument>& arguments) {
    arguments_ = &arguments;
    while (to_meeting()) meet();
    Outputs outputs;
    for (std::size_t i = 0; i < (outputs_ == JoinedOutputs::kOfAll ? parts_.size() : 1); ++i)
      for (std::size_t k = 0; k < graph(i).outputs.size(); ++k)
        outputs.emplace_back(graph(i).output_names[k], value(i, graph(i).outputs[k]));
    return outputs;
  }

 private:
  const Graph& graph(std::size_t replica) const { return parts_[replica].function->graph; }
  const Node& node(std::size_t replica) const { return graph(replica).nodes[next_[replica]]; }
  bool ended(std::size_t replica) const { return next_[replica] == graph(replica).nodes.size(); }
  const Array& value(std::size_t replica, ValueRef ref) const {
    return values_[replica][static_cast<std::size_t>(ref.node)]
                  [static_cast<std::size_t>(ref.output)];
  }
  std::vector<Array> inputs(std::size_t replica) const {
    std::vector<Array> inputs;
    for (ValueRef ref : node(replica).inputs) inputs.push_back(value(replica, ref));
    return inputs;
  }
  // The node's outputs; and on to the next one.
  void done(std::size_t replica, std::vector<Array> outputs) {
    values_[replica].push_back(std::move(outputs));
    ++next_[replica];
  }

  // false: all replicas have ended.
  bool to_meeting() {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      while (!ended(i) && !meets(node(i))) done(i, alone(i));
    for (std::size_t i = 1; i < parts_.size(); ++i)
      if (ended(i) != ended(0) || (!ended(0) && !meets_alike(node(0), node(i))))
        throw InvalidArgumentError(
            "the replicas take elements at different places of the function, or different numbers "
            "of them: get_next() must be called as often on each of them");
    return !ended(0);
  }
  static bool meets(const Node& node) {
    return is_update(node) || node.op->effect == Effect::kAllReduce ||
           node.op->effect == Effect::kAdvance;
  }
  static bool meets_alike(const Node& a, const Node& b) {
    if (a.op->effect != b.op->effect) return false;
    return a.op->effect != Effect::kAdvance ||
           a.attributes.get<std::int64_t>("iterator") == b.attributes.get<std::int64_t>("iterator");
  }
  void meet() {
    const OriginScope origin(node(0).origin);
    switch (node(0).op->effect) {
      case Effect::kAdvance:
        for (std::size_t i = 0; i < parts_.size(); ++i) done(i, effect(i, inputs(i)));
        return;
      case Effect::kAllReduce: return all_reduce();
      default: return update();
    }
  }

  std::vector<Array> alone(std::size_t replica) const {
    const Node& node = this->node(replica);
    const OriginScope origin(node.origin);
    if (node.op->effect == Effect::kArgument) return {argument(replica)};
    if (node.op->effect == Effect::kRead) return effect(replica, inputs(replica));
    const Array made = record(node.op->name, inputs(replica), node.attributes);
    if (node.op->has(OpFlags::kStepKey)) return {own_key(made, replica)};
    std::vector<Array> outputs;
    for (std::size_t k = 0; k < node.outputs.size(); ++k)
      outputs.emplace_back(made.node(), static_cast<int>(k));
    return outputs;
  }

  Array argument(std::size_t replica) const {
    const ReplicaPart& part = parts_[replica];
    const auto index =
        static_cast<std::size_t>(node(replica).attributes.get<std::int64_t>("index"));
    if (index == part.arguments.size()) return recorded_worker_index();
    return std::get<Array>((*arguments_)[part.arguments[index]]);
  }

  // The step, and the replica's number among those of all closures of the step.
  Array own_key(const Array& key, std::size_t replica) const {
    const std::array<std::int64_t, 2> factor{1, static_cast<std::int64_t>(parts_.size())};
    const std::array<std::int64_t, 2> offset{0, static_cast<std::int64_t>(replica)};
    return key * Array(Tensor::of<std::int64_t>({2}, factor)) +
           Array(Tensor::of<std::int64_t>({2}, offset));
  }

  std::shared_ptr<const VariableSpec> variable(std::size_t replica) const {
    const auto index = node(replica).attributes.get<std::int64_t>("variable");
    return parts_[replica].function->variables[static_cast<std::size_t>(index)];
  }

  // A read or an advance, as it stands there.
  std::vector<Array> effect(std::size_t replica, std::vector<Array> inputs) const {
    const Node& node = this->node(replica);
    const bool reads = is_read(node);
    std::vector<TensorType> subject = node.outputs;
    if (reads) subject = {{variable(replica)->dtype, variable(replica)->shape}};
    auto made =
        record_effect({node.op->name, std::move(inputs), reads ? Attributes() : node.attributes,
                       std::move(subject), reads ? variable(replica) : nullptr, nullptr});
    std::vector<Array> outputs;
    for (std::size_t k = 0; k < node.outputs.size(); ++k)
      outputs.emplace_back(made, static_cast<int>(k));
    return outputs;
  }

  Array sum_of(const std::vector<Array>& values) const {
    Array sum = values[0];
    for (std::size_t i = 1; i < values.size(); ++i) sum = sum + values[i];
    return sum;
  }
  Array count() const { return Array(static_cast<float>(parts_.size())); }

  void all_reduce() {
    const bool mean =
        parse_reduce_op(node(0).attributes.get<std::string>("reduction")) == ReduceOp::kMean;
    std::vector<Array> reduced;
    for (std::size_t k = 0; k < node(0).inputs.size(); ++k) {
      std::vector<Array> shares;
      for (std::size_t i = 0; i < parts_.size(); ++i) shares.push_back(value(i, node(i).inputs[k]));
      reduced.push_back(mean ? sum_of(shares) / count() : sum_of(shares));
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) done(i, reduced);
  }

  void update() {
    const Node& first = node(0);
    const auto rule = first.attributes.get<UpdateRule>("rule");
    const bool sparse = first.attributes.get<bool>("sparse");
    const auto shares = parse_aggregation(first.attributes.get_or<std::string>("shares", "none"));
    std::vector<std::vector<Array>> all;
    for (std::size_t i = 0; i < parts_.size(); ++i) all.push_back(inputs(i));
    std::vector<Array> one = all[0];  // with the learning rate, which is the same for all
    if (shares == Aggregation::kSum || shares == Aggregation::kMean) {
      const bool mean = shares == Aggregation::kMean;
      if (sparse)
        join_rows(all, mean && scales(rule), one);
      else
        one[0] = shared_value(all, mean);
    }
    wait_for_all(all, one.back());
    record_effect({"update_variable",
                   std::move(one),
                   {{"rule", rule}, {"sparse", sparse}},
                   {{variable(0)->dtype, variable(0)->shape}},
                   variable(0),
                   nullptr});
    for (std::size_t i = 0; i < parts_.size(); ++i) done(i, {});
  }

  Array shared_value(const std::vector<std::vector<Array>>& all, bool mean) const {
    std::vector<Array> values;
    for (const auto& inputs : all) values.push_back(inputs[0]);
    return mean ? sum_of(values) / count() : sum_of(values);
  }

  // Makes the update wait for the values of all replicas. If a check of numerics fails on one of
  // them, the update is left out, even if none of its inputs depends on that replica: a rate, say.
  static void wait_for_all(const std::vector<std::vector<Array>>& all, Array& input) {
    for (std::size_t i = 1; i < all.size(); ++i)
      for (const Array& of_other : all[i]) input = after(input, of_other);
  }
  // Bounds have no mean.
  static bool scales(const UpdateRule& rule) {
    const EqualIds how = equal_ids(rule.kind);
    return how == EqualIds::kSum || how == EqualIds::kProduct;
  }
  // Rows of equal ids become one when they are pushed, by the rule, as those of one replica do.
  void join_rows(const std::vector<std::vector<Array>>& all, bool mean,
                 std::vector<Array>& one) const {
    const Shape row = variable(0)->shape.with_dim(0, Shape::kUnknown);
    std::vector<Array> ids, rows;
    for (const auto& inputs : all) {
      ids.push_back(inputs[0].rank() == 1 ? inputs[0] : reshape(inputs[0], {Shape::kUnknown}));
      rows.push_back(inputs[0].rank() == 1 ? inputs[1] : reshape(inputs[1], row));
      if (mean) rows.back() = rows.back() / count();
    }
    one[0] = concat(ids, 0);
    one[1] = concat(rows, 0);
  }

  const std::vector<ReplicaPart>& parts_;
  const JoinedOutputs outputs_;
  const std::vector<TraceArgument>* arguments_ = nullptr;
  std::vector<std::size_t> next_;                        // by replica: the node at hand
  std::vector<std::vector<std::vector<Array>>> values_;  // by replica, node and output
};

}  // namespace

void require_same_meetings(const Graph& first, const Graph& own, std::size_t replica) {
  const auto a = meetings_of(first), b = meetings_of(own);
  const auto [of_first, of_own] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (of_first == a.end() && of_own == b.end()) return;
  throw InvalidArgumentError(
      str("the replicas' functions must meet in the same places: replica 0 has ",
          of_first == a.end() ? "nothing more" : *of_first, " where replica ", replica, " has ",
          of_own == b.end() ? "nothing more" : *of_own));
}

ConcreteFunction join_replicas(const std::vector<ReplicaPart>& parts, JoinedOutputs outputs) {
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i].function->hash != parts[0].function->hash)
      require_same_meetings(parts[0].function->graph, parts[i].function->graph, i);
  Joiner joiner(parts, outputs);
  ConcreteFunction joined =
      trace([&](const std::vector<TraceArgument>& arguments) { return joiner(arguments); },
            joiner.signature());
  joined.replicas = static_cast<int>(parts.size());
  return joined;
}

}  // namespace cairn
