#include "core/exec/wave_cutter.h"

#include <algorithm>
#include <deque>

#include "core/graph/op_def.h"

namespace cairn {
namespace {

class WaveCutter {
 public:
  explicit WaveCutter(const Plan& plan)
      : plan_(plan),
        done_(plan.graph.nodes.size(), false),
        begun_(done_),
        held_(plan.graph.variables.size()) {}

  std::vector<Wave> cut() {
    for (;;) {
      find_ready();
      if (!reads_.empty())
        add_pull();
      else if (!reductions_.empty())
        add_all_reduce();
      else if (!under_way_.empty())
        add_await();
      else if (blocked_)
        add_push();
      else
        break;
    }
    add_rest();
    return std::move(waves_);
  }

 private:
  // An effect that is not done yet holds back others on its variable: a read holds updates, an
  // update reads, a stuck update updates too.
  struct Held {
    bool updates = false, reads = false;
  };
  using Nodes = std::vector<std::size_t>;

  const Node& node(std::size_t i) const { return plan_.graph.nodes[i]; }
  bool inputs_in(const std::vector<bool>& set, std::size_t i) const {
    return std::all_of(node(i).inputs.begin(), node(i).inputs.end(),
                       [&](ValueRef in) { return set[static_cast<std::size_t>(in.node)]; });
  }

  // One walk in program order. available_: computable from what is done. No read passes an update,
  // no update passes a read or an update that is not ready, no all-reduce passes another.
  void find_ready() {
    available_ = done_;
    std::fill(held_.begin(), held_.end(), Held{});
    reads_.clear();
    updates_.clear();
    reductions_.clear();
    blocked_ = false;
    bool reductions_held = false;
    for (std::size_t i = 0; i < done_.size(); ++i) {
      if (done_[i] || begun_[i] || !plan_.live(static_cast<std::int32_t>(i))) continue;
      const bool inputs = inputs_in(available_, i);
      if (is_read(node(i))) {
        consider_read(i, inputs);
      } else if (is_update(node(i))) {
        consider_update(i, inputs);
      } else if (plan_.reduces(node(i))) {
        reductions_held = reductions_held || !inputs;
        if (!reductions_held) reductions_.push_back(i);
      } else {
        available_[i] = inputs;
      }
    }
  }

  void consider_read(std::size_t i, bool inputs) {
    Held& held = held_[static_cast<std::size_t>(variable_number(node(i)))];
    if (inputs && !held.reads)
      reads_.push_back(i);
    else
      blocked_ = true;
    held.updates = true;
  }

  void consider_update(std::size_t i, bool inputs) {
    Held& held = held_[static_cast<std::size_t>(variable_number(node(i)))];
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
  void compute_all(Wave& wave) {
    compute_where([](std::size_t) { return true; }, wave);
  }

  // By node: does one of `nodes` depend on it, or is it one of them?
  std::vector<bool> leading_to(const Nodes& nodes) const {
    std::vector<bool> leads(done_.size(), false);
    for (std::size_t i : nodes) leads[i] = true;
    for (std::size_t i = done_.size(); i-- > 0;)
      if (leads[i])
        for (ValueRef in : node(i).inputs) leads[static_cast<std::size_t>(in.node)] = true;
    return leads;
  }

  // Only what leads to `nodes`: the rest can wait until the request is under way.
  void compute_for(const Nodes& nodes, Wave& wave) {
    const std::vector<bool> needed = leading_to(nodes);
    compute_where([&](std::size_t i) { return needed[i]; }, wave);
  }

  void add_pull() {
    Wave wave;
    compute_for(reads_, wave);
    for (std::size_t i : reads_) {
      const std::int32_t variable = variable_number(node(i));
      const bool whole = node(i).inputs.empty();
      auto same = std::find_if(wave.reads.begin(), wave.reads.end(), [&](const ReadGroup& g) {
        return g.variable == variable && g.whole == whole;
      });
      if (same == wave.reads.end()) same = wave.reads.insert(same, {variable, whole, {}});
      same->nodes.push_back(static_cast<std::int32_t>(i));
      done_[i] = true;
    }
    waves_.push_back(std::move(wave));
  }

  // Computes no more than the next one needs, so that it leaves as early as it can; those behind it
  // that need nothing else travel with it. Fusion loses nothing by such a cut: a value with one
  // consumer is needed where its consumer is.
  void add_all_reduce() {
    Wave wave;
    compute_for({reductions_.front()}, wave);
    under_way_.emplace_back();
    for (std::size_t i : reductions_) {
      if (!inputs_in(done_, i)) break;
      wave.reductions.push_back(static_cast<std::int32_t>(i));
      under_way_.back().push_back(i);
      begun_[i] = true;
    }
    waves_.push_back(std::move(wave));
  }

  // As many as it takes until something can be computed, pulled or reduced again.
  void add_await() {
    Wave wave;
    compute_all(wave);
    do {
      for (std::size_t i : under_way_.front()) done_[i] = true;
      under_way_.pop_front();
      wave.awaited = tickets_awaited_++;
      find_ready();
    } while (!under_way_.empty() && reads_.empty() && reductions_.empty() && available_ == done_);
    waves_.push_back(std::move(wave));
  }

  void add_push() {
    CAIRN_CHECK(!updates_.empty(),
                "a graph in program order always has a next effect that is ready");
    Wave wave;
    Nodes wanted = updates_;
    // A check of a value that an update is computed from comes before it, whether or not the update
    // takes the check's result.
    const std::vector<bool> leads = leading_to(updates_);
    for (std::size_t i = 0; i < done_.size(); ++i)
      if (is_check(node(i)) && leads[static_cast<std::size_t>(node(i).inputs[0].node)])
        wanted.push_back(i);
    compute_for(wanted, wave);
    for (std::size_t i : updates_) {
      wave.updates.push_back(static_cast<std::int32_t>(i));
      done_[i] = true;
    }
    waves_.push_back(std::move(wave));
  }

  // The rest of the compute first: one push is cheaper than two, and checks come before it.
  void add_rest() {
    Wave last;
    compute_all(last);
    for (std::size_t i = 0; i < done_.size(); ++i)
      if (plan_.live(static_cast<std::int32_t>(i)) && !done_[i])
        last.updates.push_back(static_cast<std::int32_t>(i));
    waves_.push_back(std::move(last));
  }

  const Plan& plan_;
  std::vector<bool> done_, available_;
  std::vector<bool> begun_;             // all-reduces, awaited or not
  std::deque<Nodes> under_way_;         // all-reduces not awaited yet, by ticket
  std::int32_t tickets_awaited_ = 0;    // the first of under_way_ has this ticket
  std::vector<Held> held_;              // by variable
  Nodes reads_, updates_, reductions_;  // ready
  bool blocked_ = false;
  std::vector<Wave> waves_;
};

}  // namespace

std::vector<Wave> cut_waves(const Plan& plan) { return WaveCutter(plan).cut(); }

std::int32_t variable_number(const Node& node) {
  return static_cast<std::int32_t>(node.attributes.get<std::int64_t>("variable"));
}

}  // namespace cairn
