// Runs that never leave the device: enqueued once more while the device records, then replayed.
#include <algorithm>

#include "core/exec/step.h"
#include "core/graph/op_def.h"

namespace cairn {

// A learning rate that came with the run or the graph is known before anything is computed.
bool Step::rate_is_given(std::int32_t update) const {
  const Node& n = node(update);
  return is_assignment(n.attributes.get<UpdateRule>("rule").kind) ||
         outside_tensor(bound_->root(input(update, n.inputs.size() - 1))) != nullptr;
}

// Whether the host can enqueue the whole run without looking at a value or computing one.
bool Step::may_record() const {
  const auto is_on_host = [&](std::int32_t value) {
    return bound_->type(value).dtype == DType::kString;
  };
  for (std::size_t w = 0; w < bound_->waves.size(); ++w) {
    const Wave& wave = plan_->waves[w];
    if (!wave.reductions.empty() || wave.awaited >= 0) return false;
    for (const Instruction& one : bound_->waves[w].compute)
      if (!one.run || node(one.node).op->has(OpFlags::kOnHost) ||
          std::ranges::any_of(one.inputs, is_on_host) ||
          std::ranges::any_of(one.outputs, is_on_host))
        return false;
    for (std::int32_t i : wave.updates)
      if (!rate_is_given(i)) return false;
  }
  return true;
}

// By variable of the graph; empty: some are in the host's memory, or cached here.
std::vector<const std::byte*> Step::rows_on_device() {
  std::vector<const std::byte*> rows;
  for (std::size_t v = 0; v < plan_->bound.size(); ++v) {
    const DeviceRows::Held* const held = hold(v);
    if (held == nullptr || held->cache != nullptr) return {};
    rows.push_back(held->memory.get());
  }
  return rows;
}

void Step::enqueue_all() {
  for (wave_ = 0; wave_ < plan_->waves.size(); ++wave_) {
    compute();
    for (std::size_t g = 0; g < plan_->waves[wave_].reads.size(); ++g) serve(g);
    enqueue_lookups(bound_->waves[wave_].lookups);
    space_.made.updates.clear();
    for (BoundUpdate& update : bound_->waves[wave_].updates) space_.made.updates.push_back(&update);
    enqueue_updates(space_.made.updates);
    space_.device.row_kernels()->finish_updates();
  }
}

// Replays the run, recording it first if necessary. False: the run is still to be made step by
// step, as the first one always is, because it prepares the kernels.
bool Step::run_recorded() {
  RecordedRun& recorded = bound_->recorded;
  using State = RecordedRun::State;
  if (lender_ == nullptr || places_.wants_told() || recorded.state == State::kNever) return false;
  const std::vector<const std::byte*> rows = rows_on_device();
  if (rows.size() != plan_->bound.size()) {
    // Kernels of this run are those of other variables than the ones that lie there later.
    recorded = {};
    return false;
  }
  if (recorded.state == State::kNew) {
    recorded.state = may_record() ? State::kUsed : State::kNever;
    return false;
  }
  for (BoundWave& wave : bound_->waves)
    if (std::ranges::any_of(wave.updates, [&](auto& one) { return held_for(one) == nullptr; }))
      return false;
  for (BoundWave& wave : bound_->waves) send_rates(wave.updates);
  if (recorded.work == nullptr || recorded.arena != arena_.get() || recorded.rows != rows) {
    recorded.work = space_.device.record([&] { enqueue_all(); });
    recorded.arena = arena_.get();
    recorded.rows = rows;
    if (recorded.work == nullptr) {
      recorded.state = State::kNever;
      enqueue_all();
      return true;
    }
  }
  recorded.work->replay();
  wave_ = plan_->waves.size();
  return true;
}

}  // namespace cairn
