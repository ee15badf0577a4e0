#include "core/exec/plan.h"

#include <algorithm>

#include "core/exec/wave_cutter.h"
#include "core/graph/op_def.h"
#include "core/graph/reduced_shares.h"

namespace cairn {

bool Plan::shares_variable(const Wave& wave, std::int32_t update) const {
  const auto node = [&](std::int32_t i) -> const Node& {
    return graph.nodes[static_cast<std::size_t>(i)];
  };
  return std::ranges::any_of(wave.updates, [&](std::int32_t i) {
    return is_shared_update(node(i)) && variable_number(node(i)) == variable_number(node(update));
  });
}

bool Plan::reduces(const Node& node) const {
  return node.op->effect == Effect::kAllReduce && options.replicas > 1;
}

// The order matters: what is live decides who counts as a reader, and waves are cut from live
// nodes. Which updates take their ids from a read is known only then, and after that some compute
// is idle.
Plan::Plan(Graph g, std::vector<VariableId> b, PlanOptions o)
    : graph(std::move(g)), bound(std::move(b)), options(o), rows_alike(!graph.updates_variables()) {
  CAIRN_CHECK(bound.size() == graph.variables.size(), bound.size(), " ids for ",
              graph.variables.size(), " variables");
  CAIRN_CHECK(options.replicas >= 1, "a plan for ", options.replicas, " replicas");
  number_values();
  find_live();
  count_uses();
  find_variable_uses();
  waves = cut_waves(*this);
  match_update_ids();
  drop_unneeded();
}

// Values are numbered through the whole graph, node by node, so that tables by value are plain
// vectors.
void Plan::number_values() {
  std::vector<std::int32_t> taken(graph.iterators.size(), 0);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    value_base.push_back(static_cast<std::int32_t>(producer.size()));
    producer.insert(producer.end(), node.outputs.size(), static_cast<std::int32_t>(i));
    bool advance = node.op->effect == Effect::kAdvance;
    advance_number.push_back(
        advance ? taken[static_cast<std::size_t>(node.attributes.get<std::int64_t>("iterator"))]++
                : 0);
  }
  value_base.push_back(static_cast<std::int32_t>(producer.size()));
  elements_taken.assign(taken.begin(), taken.end());
}

// One walk backwards is enough, because inputs stand before the nodes that read them.
void Plan::find_live() {
  live_.assign(graph.nodes.size(), false);
  for (ValueRef out : graph.outputs) live_[static_cast<std::size_t>(out.node)] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.op->has(OpFlags::kAlwaysLive)) live_[i] = true;
    if (!live_[i]) continue;
    all_reduces = all_reduces || node.op->effect == Effect::kAllReduce;
    for (ValueRef in : node.inputs) live_[static_cast<std::size_t>(in.node)] = true;
  }
}

void Plan::count_uses() {
  uses.assign(producer.size(), 0);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (live_[i])
      for (ValueRef in : graph.nodes[i].inputs) ++uses[static_cast<std::size_t>(value(in))];
  for (ValueRef out : graph.outputs) ++uses[static_cast<std::size_t>(value(out))];
}

void Plan::find_variable_uses() {
  variable_uses.resize(graph.variables.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!live_[i] || (node.op->effect != Effect::kRead && !is_update(node))) continue;
    VariableUse& use = variable_uses[static_cast<std::size_t>(variable_number(node))];
    if (!is_update(node)) {
      use.by_ids = use.by_ids && !node.inputs.empty();
      continue;
    }
    use.changed = true;
    // A shared update becomes one with those of other replicas, and the store applies it.
    use.by_ids = use.by_ids && !is_shared_update(node) && node.attributes.get<bool>("sparse") &&
                 !is_table_rule(node.attributes.get<UpdateRule>("rule").kind);
  }
}

// The value whose numbers these ids are: through reshapes and widening.
ValueRef Plan::id_source(ValueRef ids) const {
  for (;;) {
    const Node& node = graph.nodes[static_cast<std::size_t>(ids.node)];
    bool widens = node.op->has(OpFlags::kConversion) &&
                  graph.type(node.inputs[0]).dtype == DType::kInt32 &&
                  node.outputs[0].dtype == DType::kInt64;
    if (!widens && (node.inputs.empty() || !is_alias(node, graph.type(node.inputs[0]).dtype)))
      return ids;
    ids = node.inputs[0];
  }
}

std::vector<ValueRef> Plan::joined_ids(ValueRef ids) const {
  ids = id_source(ids);
  const Node& node = graph.nodes[static_cast<std::size_t>(ids.node)];
  if (!node.op->has(OpFlags::kConcatenation) || node.outputs[0].shape.rank() != 1) return {ids};
  std::vector<ValueRef> parts;
  for (ValueRef part : node.inputs) parts.push_back(id_source(part));
  return parts;
}

// The gradient of a gather has the gather's ids, which were sorted and made distinct for the pull.
// An update that is found to have the same ones is spared doing that again. A read in a later wave,
// which sees the update, finds its ids only after it.
void Plan::match_update_ids() {
  update_ids.resize(graph.nodes.size());
  for (std::size_t u = 0; u < graph.nodes.size(); ++u) {
    const Node& update = graph.nodes[u];
    if (!live_[u] || !is_update(update) || !update.attributes.get<bool>("sparse")) continue;
    std::vector<ValueRef> parts = joined_ids(update.inputs[0]);
    const auto updates_in = [&](const Wave& wave) {
      return std::ranges::count(wave.updates, static_cast<std::int32_t>(u)) > 0;
    };
    for (std::size_t w = 0; w < waves.size() && !updates_in(waves[w]); ++w)
      for (std::size_t g = 0; g < waves[w].reads.size(); ++g) {
        const ReadGroup& group = waves[w].reads[g];
        if (group.whole || group.variable != variable_number(update) ||
            group.nodes.size() != parts.size())
          continue;
        bool same = true;
        for (std::size_t i = 0; i < parts.size() && same; ++i)
          same = id_source(graph.nodes[static_cast<std::size_t>(group.nodes[i])].inputs[0]) ==
                 parts[i];
        if (same) update_ids[u] = {static_cast<std::int32_t>(w), static_cast<std::int32_t>(g)};
      }
  }
}

// An update that takes its ids from a read leaves what was recorded to make them without a reader,
// and so does an operation that asks for a shape alone.
void Plan::drop_unneeded() {
  std::vector<bool> needed(graph.nodes.size(), false);
  auto need_inputs = [&](std::size_t i) {
    const Node& node = graph.nodes[i];
    for (std::size_t k = update_ids[i].wave >= 0 ? 1 : 0; k < node.inputs.size(); ++k)
      if (!node.op->needs_shape_only(k))
        needed[static_cast<std::size_t>(node.inputs[k].node)] = true;
  };
  for (ValueRef out : graph.outputs) needed[static_cast<std::size_t>(out.node)] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;)
    if (needed[i] ||
        (live_[i] && (reduces(graph.nodes[i]) || graph.nodes[i].op->has(OpFlags::kAlwaysLive)))) {
      needed[i] = true;
      need_inputs(i);
    }
  for (Wave& wave : waves)
    std::erase_if(wave.compute,
                  [&](std::int32_t i) { return !needed[static_cast<std::size_t>(i)]; });
}

std::shared_ptr<const Plan> make_plan(Graph graph, std::vector<VariableId> bound,
                                      PlanOptions options) {
  if (options.reduces_shares && options.replicas > 1) graph = with_reduced_shares(std::move(graph));
  return std::make_shared<const Plan>(std::move(graph), std::move(bound), options);
}

const Graph& plan_graph(const Plan& plan) { return plan.graph; }

}  // namespace cairn
