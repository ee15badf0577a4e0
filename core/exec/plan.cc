#include "core/exec/plan.h"

#include <algorithm>

#include "core/graph/op_def.h"

namespace cairn {
namespace {

std::int32_t variable_of(const Node& node) {
  return static_cast<std::int32_t>(node.attributes.get<std::int64_t>("variable"));
}
bool is_read(const Node& node) { return node.op->effect == Effect::kRead; }
bool is_update(const Node& node) { return node.op->effect == Effect::kUpdate; }

// Cuts the live nodes into waves: again and again the reads that are ready, with just the compute
// their ids need; where none is ready, a push of the updates that are.
class WaveCutter {
 public:
  explicit WaveCutter(const Plan& plan)
      : plan_(plan), done_(plan.graph.nodes.size(), false), held_(plan.graph.variables.size()) {}

  std::vector<Wave> cut() {
    for (;;) {
      find_ready();
      if (!reads_.empty())
        add_pull();
      else if (blocked_)
        add_push();
      else
        break;
    }
    // Whatever is left: first the rest of the compute, so that a check that fails there comes
    // before the push.
    Wave last;
    compute_where([](std::size_t) { return true; }, last);
    for (std::size_t i = 0; i < done_.size(); ++i)
      if (plan_.live(static_cast<std::int32_t>(i)) && !done_[i])
        last.updates.push_back(static_cast<std::int32_t>(i));
    waves_.push_back(std::move(last));
    return std::move(waves_);
  }

 private:
  // What an effect still undone holds back on its variable: a read holds updates, an update reads,
  // a stuck update updates too.
  struct Held {
    bool updates = false, reads = false;
  };

  const Node& node(std::size_t i) const { return plan_.graph.nodes[i]; }

  // One walk in program order. available_: computable from what is done. No read passes an update,
  // no update passes a read or an update that is not ready.
  void find_ready() {
    available_ = done_;
    std::fill(held_.begin(), held_.end(), Held{});
    reads_.clear();
    updates_.clear();
    blocked_ = false;
    for (std::size_t i = 0; i < done_.size(); ++i) {
      if (done_[i] || !plan_.live(static_cast<std::int32_t>(i))) continue;
      bool inputs = std::all_of(node(i).inputs.begin(), node(i).inputs.end(), [&](ValueRef in) {
        return available_[static_cast<std::size_t>(in.node)];
      });
      if (is_read(node(i)))
        consider_read(i, inputs);
      else if (is_update(node(i)))
        consider_update(i, inputs);
      else
        available_[i] = inputs;
    }
  }

  void consider_read(std::size_t i, bool inputs) {
    Held& held = held_[static_cast<std::size_t>(variable_of(node(i)))];
    if (inputs && !held.reads)
      reads_.push_back(i);
    else
      blocked_ = true;
    held.updates = true;
  }

  void consider_update(std::size_t i, bool inputs) {
    Held& held = held_[static_cast<std::size_t>(variable_of(node(i)))];
    if (inputs && !held.updates)
      updates_.push_back(i);
    else
      held.updates = true;
    held.reads = true;
  }

  template <typename Wanted>
  void compute_where(Wanted wanted, Wave& wave) {
    for (std::size_t i = 0; i < done_.size(); ++i) {
      if (done_[i] || !available_[i] || !wanted(i)) continue;
      wave.compute.push_back(static_cast<std::int32_t>(i));
      done_[i] = true;
    }
  }

  // Only what leads to `nodes`: the rest can wait until the request is under way.
  void compute_for(const std::vector<std::size_t>& nodes, Wave& wave) {
    std::vector<bool> needed(done_.size(), false);
    std::vector<std::size_t> pending = nodes;
    while (!pending.empty()) {
      std::size_t i = pending.back();
      pending.pop_back();
      for (ValueRef in : node(i).inputs) {
        auto from = static_cast<std::size_t>(in.node);
        if (!needed[from] && !done_[from]) pending.push_back(from);
        needed[from] = true;
      }
    }
    compute_where([&](std::size_t i) { return needed[i]; }, wave);
  }

  void add_pull() {
    Wave wave;
    compute_for(reads_, wave);
    for (std::size_t i : reads_) {
      std::int32_t variable = variable_of(node(i));
      bool whole = node(i).op->name == "read_variable";
      auto same = std::find_if(wave.reads.begin(), wave.reads.end(), [&](const ReadGroup& g) {
        return g.variable == variable && g.whole == whole;
      });
      if (same == wave.reads.end()) same = wave.reads.insert(same, {variable, whole, {}});
      same->nodes.push_back(static_cast<std::int32_t>(i));
      done_[i] = true;
    }
    waves_.push_back(std::move(wave));
  }

  void add_push() {
    CAIRN_CHECK(!updates_.empty(),
                "a graph in program order always has a next effect that is ready");
    Wave wave;
    // a check that fails shall come before the push
    compute_where([](std::size_t) { return true; }, wave);
    for (std::size_t i : updates_) {
      wave.updates.push_back(static_cast<std::int32_t>(i));
      done_[i] = true;
    }
    waves_.push_back(std::move(wave));
  }

  const Plan& plan_;
  std::vector<bool> done_, available_;
  std::vector<Held> held_;  // by variable
  std::vector<std::size_t> reads_, updates_;
  bool blocked_ = false;
  std::vector<Wave> waves_;
};

}  // namespace

bool is_shape_only(std::string_view op, std::size_t i) {
  if (op == "zeros_like" || op == "ones_like" || op == "dim_size" || op == "element_count")
    return true;
  if (op == "reshape_like" || op == "broadcast_like" || op == "sum_to_like" || op == "slice_grad")
    return i == 1;
  if (op == "avg_pool2d_grad" || op.starts_with("random_")) return i == 1;
  if (op == "gather_grad" || op == "combine_rows_grad" || op == "conv2d_grad_input" ||
      op == "conv2d_grad_filter")
    return i == 2;
  return op == "concat_grad" && i >= 1;
}

bool is_alias(const Node& node, DType input) {
  std::string_view op = node.op->name;
  return op == "reshape" || op == "reshape_like" || op == "stop_gradient" ||
         op == "check_numerics" || (op == "cast" && input == node.outputs[0].dtype);
}

Plan::Plan(Graph g, std::vector<VariableId> b, PlanOptions o)
    : graph(std::move(g)), bound(std::move(b)), options(o) {
  CAIRN_CHECK(bound.size() == graph.variables.size(), bound.size(), " ids for ",
              graph.variables.size(), " variables");
  number_values();
  find_live();
  count_uses();
  waves = WaveCutter(*this).cut();
  match_update_ids();
  drop_unneeded();
}

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

void Plan::find_live() {
  live_.assign(graph.nodes.size(), false);
  for (ValueRef out : graph.outputs) live_[static_cast<std::size_t>(out.node)] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (is_update(node) || node.op->name == "check_numerics") live_[i] = true;
    if (live_[i])
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

// The value whose numbers these ids are: through reshapes and widening.
ValueRef Plan::id_source(ValueRef ids) const {
  for (;;) {
    const Node& node = graph.nodes[static_cast<std::size_t>(ids.node)];
    bool widens = node.op->name == "cast" && graph.type(node.inputs[0]).dtype == DType::kInt32 &&
                  node.outputs[0].dtype == DType::kInt64;
    if (!widens && (node.inputs.empty() || !is_alias(node, graph.type(node.inputs[0]).dtype)))
      return ids;
    ids = node.inputs[0];
  }
}

std::vector<ValueRef> Plan::joined_ids(ValueRef ids) const {
  ids = id_source(ids);
  const Node& node = graph.nodes[static_cast<std::size_t>(ids.node)];
  if (node.op->name != "concat" || node.outputs[0].shape.rank() != 1) return {ids};
  std::vector<ValueRef> parts;
  for (ValueRef part : node.inputs) parts.push_back(id_source(part));
  return parts;
}

void Plan::match_update_ids() {
  update_ids.resize(graph.nodes.size());
  for (std::size_t u = 0; u < graph.nodes.size(); ++u) {
    const Node& update = graph.nodes[u];
    if (!live_[u] || !is_update(update) || !update.attributes.get<bool>("sparse")) continue;
    std::vector<ValueRef> parts = joined_ids(update.inputs[0]);
    for (std::size_t w = 0; w < waves.size(); ++w)
      for (std::size_t g = 0; g < waves[w].reads.size(); ++g) {
        const ReadGroup& group = waves[w].reads[g];
        if (group.whole || group.variable != variable_of(update) ||
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

// An update that takes its ids from a read leaves what was recorded to make them without a reader.
void Plan::drop_unneeded() {
  std::vector<bool> needed(graph.nodes.size(), false);
  auto need_inputs = [&](std::size_t i) {
    for (std::size_t k = update_ids[i].wave >= 0 ? 1 : 0; k < graph.nodes[i].inputs.size(); ++k)
      needed[static_cast<std::size_t>(graph.nodes[i].inputs[k].node)] = true;
  };
  for (ValueRef out : graph.outputs) needed[static_cast<std::size_t>(out.node)] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;)
    if (needed[i] ||
        (live_[i] && (is_update(graph.nodes[i]) || graph.nodes[i].op->name == "check_numerics"))) {
      needed[i] = true;
      need_inputs(i);
    }
  for (Wave& wave : waves)
    std::erase_if(wave.compute,
                  [&](std::int32_t i) { return !needed[static_cast<std::size_t>(i)]; });
}

std::shared_ptr<const Plan> make_plan(Graph graph, std::vector<VariableId> bound,
                                      PlanOptions options) {
  return std::make_shared<const Plan>(std::move(graph), std::move(bound), options);
}

const Graph& plan_graph(const Plan& plan) { return plan.graph; }

}  // namespace cairn
