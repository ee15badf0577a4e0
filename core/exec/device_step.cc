#include "core/exec/device_step.h"

#include <algorithm>

#include "core/graph/op_def.h"

namespace cairn {

// A learning rate that came with the run or the graph is known before anything is computed.
bool DeviceStep::rate_is_given(std::int32_t update) const {
  const Node& n = values_.node(update);
  if (is_assignment(n.attributes.get<UpdateRule>("rule").kind)) return true;
  const std::int32_t rate = values_.input(update, n.inputs.size() - 1);
  return values_.outside_tensor(values_.bound().root(rate)) != nullptr;
}

// Whether the host can enqueue the whole run without looking at a value or computing one.
bool DeviceStep::may_record() const {
  const BoundPlan& bound = values_.bound();
  const auto is_string = [&](std::int32_t value) {
    return bound.type(value).dtype == DType::kString;
  };
  const auto needs_host = [&](const Instruction& one) {
    return !one.run || values_.node(one.node).op->has(OpFlags::kOnHost) ||
           std::ranges::any_of(one.inputs, is_string) ||
           std::ranges::any_of(one.outputs, is_string);
  };
  for (std::size_t w = 0; w < bound.waves.size(); ++w) {
    const Wave& wave = values_.plan().waves[w];
    if (!wave.reductions.empty() || wave.awaited >= 0) return false;
    if (std::ranges::any_of(bound.waves[w].compute, needs_host)) return false;
    for (std::int32_t i : wave.updates)
      if (!rate_is_given(i)) return false;
  }
  return true;
}

// By variable of the graph; empty: some are in the host's memory, or cached here.
std::vector<const std::byte*> DeviceStep::rows_here() const {
  std::vector<const std::byte*> rows;
  for (std::size_t v = 0; v < values_.plan().bound.size(); ++v) {
    const DeviceRows::Held* const held = reads.hold(v);
    if (held == nullptr || held->cache != nullptr) return {};
    rows.push_back(held->memory.get());
  }
  return rows;
}

void DeviceStep::enqueue_all(const Compute& compute) {
  for (std::size_t w = 0; w < values_.plan().waves.size(); ++w) {
    BoundWave& wave = values_.bound().waves[w];
    compute(w);
    for (std::size_t g = 0; g < wave.reads.size(); ++g) reads.serve(values_.read_at(w, g));
    reads.enqueue(wave.lookups);
    updates.clear();
    for (BoundUpdate& update : wave.updates) updates.add(update);
    updates.enqueue(wave);
  }
}

bool DeviceStep::run_recorded(const Compute& compute) {
  RecordedRun& recorded = values_.bound().recorded;
  using State = RecordedRun::State;
  if (!reads.lends() || recorded.state == State::kNever) return false;
  const std::vector<const std::byte*> rows = rows_here();
  if (rows.size() != values_.plan().bound.size()) {
    // Kernels of this run are those of other variables than the ones that lie there later.
    recorded = {};
    return false;
  }
  if (recorded.state == State::kNew) {
    recorded.state = may_record() ? State::kUsed : State::kNever;
    return false;
  }
  for (BoundWave& wave : values_.bound().waves)
    if (!std::ranges::all_of(wave.updates, [&](auto& one) { return updates.makes(one); }))
      return false;
  for (BoundWave& wave : values_.bound().waves) updates.send_rates(wave.updates);
  const std::byte* const arena = values_.arena().get();
  if (recorded.work == nullptr || recorded.arena != arena || recorded.rows != rows) {
    recorded.work = values_.device().record([&] { enqueue_all(compute); });
    recorded.arena = arena;
    recorded.rows = rows;
    if (recorded.work == nullptr) {
      recorded.state = State::kNever;
      enqueue_all(compute);
      return true;
    }
  }
  recorded.work->replay();
  return true;
}

}  // namespace cairn
