// Memory planning: when each value is first written and last read, and so where it may lie.
#include <algorithm>

#include "core/exec/bind.h"
#include "core/graph/op_def.h"

namespace cairn {
namespace {

constexpr std::int64_t kUnset = -1;
// of a run's values together: more than any machine addresses
constexpr std::size_t kBytesMax = std::size_t{1} << 48;

}  // namespace

// Before the first instruction, to a device with memory of its own. Constants are there already
// (BoundPlan::constants).
bool Binder::is_copied_in(std::int32_t value) const {
  const std::int32_t i = plan_.producer[static_cast<std::size_t>(value)];
  const OpDef& op = *node(i).op;
  return plan_.live(i) && bound_.type(value).dtype != DType::kString &&
         (op.effect == Effect::kArgument || op.effect == Effect::kAdvance ||
          op.has(OpFlags::kStepKey));
}

// By value when it is first written and last read, and of each sparse update when its sums are
// there. Time is counted in instructions; what ends a wave is one too, at which gathered rows
// appear and updates are read.
Binder::Lives Binder::find_lives() const {
  Lives made;
  std::vector<Interval>& life = made.values;
  life.assign(plan_.values(), Interval{kUnset, kUnset, 0, 0});
  auto use = [&](std::int32_t value, std::int64_t time) {
    if (lies_within(value)) value = bound_.rows_of(value).within;
    auto& interval = life[static_cast<std::size_t>(bound_.root(value))];
    interval.last = std::max(interval.last, time);
  };
  auto define = [&](std::int32_t value, std::int64_t time) {
    if (lies_within(value)) value = bound_.rows_of(value).within;
    auto& interval = life[static_cast<std::size_t>(value)];
    if (interval.first == kUnset) interval.first = time;
    interval.last = std::max(interval.last, time);
    interval.bytes = bytes_of(bound_.stored_type(value));
  };
  if (!on_host_)
    for (std::size_t v = 0; v < life.size(); ++v)
      if (is_copied_in(static_cast<std::int32_t>(v))) define(static_cast<std::int32_t>(v), 0);
  std::int64_t time = 0;
  std::vector<std::size_t> under_way;  // waves whose reductions are not awaited yet
  std::int32_t next_awaited = 0;
  for (std::size_t w = 0; w < bound_.waves.size(); ++w) {
    for (const Instruction& instruction : bound_.waves[w].compute) {
      ++time;
      for (std::int32_t value : instruction.outputs) define(value, time);
      const Node& n = node(instruction.node);
      bool own = instruction.inputs.size() == n.inputs.size();
      for (std::size_t i = 0; i < instruction.inputs.size(); ++i)
        if (!own || !n.op->needs_shape_only(i)) use(instruction.inputs[i], time);
    }
    ++time;
    for (const ReadGroup& group : plan_.waves[w].reads)
      for (std::int32_t i : group.nodes) {
        for (ValueRef in : node(i).inputs) use(plan_.value(in), time);
        const std::int32_t value = plan_.value_base[static_cast<std::size_t>(i)];
        if (!group.whole || !on_host_) define(value, time);
        if (const RowsWithin& rows = bound_.rows_of(value); rows.within >= 0)
          define(rows.within, time);
      }
    for (const BoundUpdate& update : bound_.waves[w].updates) {
      const Node& n = node(update.node);
      for (ValueRef in : n.inputs) use(plan_.value(in), time);
      if (update.rows.within >= 0) use(update.rows.within, time);
      // An update on the device takes its ids from where the read found them.
      if (const UpdateIds& source = plan_.update_ids[static_cast<std::size_t>(update.node)];
          source.wave >= 0 && !on_host_)
        for (std::int32_t i : plan_.waves[static_cast<std::size_t>(source.wave)]
                                  .reads[static_cast<std::size_t>(source.group)]
                                  .nodes)
          use(plan_.value(node(i).inputs[0]), time);
      if (n.attributes.get<bool>("sparse") && on_host_)
        made.sums.push_back({time, time, bytes_of(input_type(n, 1)), 0});
    }
    // the others write to it at any time from here to the wave that awaits it
    if (!bound_.waves[w].reduced.empty()) under_way.push_back(w);
    for (; next_awaited <= plan_.waves[w].awaited; ++next_awaited)
      for (std::int32_t value :
           bound_.waves[under_way[static_cast<std::size_t>(next_awaited)]].reduced)
        use(value, time);
  }
  for (ValueRef out : plan_.graph.outputs) use(plan_.value(out), time + 1);
  return made;
}

// The sums of sparse updates share the arena with the values; their intervals come last in the
// list.
void Binder::place() {
  const auto [life, sums] = find_lives();
  std::vector<Interval> all;
  std::vector<std::size_t> of_value;
  for (std::size_t v = 0; v < life.size(); ++v)
    if (life[v].first != kUnset) {
      of_value.push_back(v);
      all.push_back(life[v]);
    }
  all.insert(all.end(), sums.begin(), sums.end());
  std::size_t total = 0;
  for (const Interval& interval : all) {
    if (interval.bytes > kBytesMax - total)
      throw ResourceExhaustedError("no memory for a run's values: more than 2^48 bytes");
    total += interval.bytes;
  }
  bound_.arena_bytes_ = place_intervals(all);
  if (bound_.arena_bytes_ > plan_.options.bytes_max)
    throw ResourceExhaustedError(str("a run's values take ", bound_.arena_bytes_,
                                     " bytes at once; at most ", plan_.options.bytes_max,
                                     " are allowed here: run smaller batches"));
  bound_.offsets_.assign(plan_.values(), BoundPlan::kOutside);
  for (std::size_t i = 0; i < of_value.size(); ++i) bound_.offsets_[of_value[i]] = all[i].offset;
  std::size_t next = of_value.size();
  for (BoundWave& wave : bound_.waves)
    for (BoundUpdate& update : wave.updates)
      if (node(update.node).attributes.get<bool>("sparse") && on_host_)
        update.sums_offset = all[next++].offset;
}

}  // namespace cairn
