#include "coordinator/progress/pipelines.h"

#include <algorithm>

#include "coordinator/cluster/restore_status.h"
#include "data/stage/dataset_wire.h"

namespace cairn {
namespace {
bool same(const PipelinePosition::Open& open, const TakeRecord& take) {
  return open.ordinal == take.ordinal && open.count == take.count;
}
}  // namespace

void keep_wanted(std::vector<PipelinePosition>& positions, const RestoreOptions& options) {
  const std::vector<std::string>& wanted = options.positions_of;
  std::erase_if(positions, [&](const PipelinePosition& position) {
    const std::string dataset = position.name.substr(0, position.name.rfind('/'));
    return options.new_data || (!wanted.empty() && std::ranges::count(wanted, dataset) == 0);
  });
}

std::vector<const PipelinePosition*> positions_of(const std::vector<PipelinePosition>& positions,
                                                  const std::string& dataset) {
  std::vector<const PipelinePosition*> own;
  for (const PipelinePosition& position : positions)
    if (position.name.substr(0, position.name.rfind('/')) == dataset) own.push_back(&position);
  return own;
}

bool is_position_in(const Dataset& dataset, const PipelinePosition& position) {
  for (const auto& [ordinal, state] : position.states)
    if (!state.empty()) return is_state_of(dataset, state);
  return true;
}

InvalidArgumentError other_dataset(const std::string& name) {
  return InvalidArgumentError(str(
      "dataset \"", name, "\" is not the one that the checkpoint has a position in: its files, ",
      "columns, features (with what was fitted to the data) or options differ; go on with the "
      "data that the checkpoint was saved with, or begin the data at its start, by "
      "RestoreOptions::new_data (--new-data of cairn train)"));
}

Pipeline::Pipeline(PipelinePosition position, bool ended)
    : position_(std::move(position)), ended_(ended) {
  // Elements that the earlier run took and never committed belong to no closure of this run. They
  // are given out again before anything new.
  revisit_ = std::exchange(position_.open, {});
  position_.states.try_emplace(0);  // the beginning is always a state
}

TakeRecord Pipeline::take(std::uint64_t id, std::uint32_t count) {
  TakeRecord taken{id, position_.next, count};
  // A closure takes one unbroken range, because a take is named by its first ordinal and its count.
  auto fits = std::find_if(revisit_.begin(), revisit_.end(),
                           [&](const auto& open) { return open.count >= count; });
  if (fits != revisit_.end()) {
    taken.ordinal = fits->ordinal;
    fits->ordinal += count;
    fits->count -= count;
    if (fits->count == 0) revisit_.erase(fits);
  } else {
    position_.next += count;
  }
  position_.open.push_back({taken.ordinal, count});
  return taken;
}

// Elements between those that were taken before and these were taken by closures that the journal
// does not tell of: they are given out again.
bool Pipeline::take_again(const TakeRecord& take) {
  const std::uint64_t end = take.ordinal + take.count;
  if (take.ordinal >= position_.next) {
    if (take.ordinal > position_.next)
      revisit_.push_back(
          {position_.next, static_cast<std::uint32_t>(take.ordinal - position_.next)});
    position_.next = end;
  } else {
    const auto within = std::ranges::find_if(revisit_, [&](const auto& open) {
      return open.ordinal <= take.ordinal && end <= open.ordinal + open.count;
    });
    if (within == revisit_.end()) return false;
    const PipelinePosition::Open behind{
        end, static_cast<std::uint32_t>(within->ordinal + within->count - end)};
    within->count = static_cast<std::uint32_t>(take.ordinal - within->ordinal);
    const auto at = within->count == 0 ? revisit_.erase(within) : std::next(within);
    if (behind.count > 0) revisit_.insert(at, behind);
  }
  position_.open.push_back({take.ordinal, take.count});
  return true;
}

std::pair<std::uint64_t, const std::vector<std::byte>*> Pipeline::base(
    std::uint64_t ordinal) const {
  auto above = position_.states.upper_bound(ordinal);
  CAIRN_CHECK(above != position_.states.begin(), "no state of pipeline ", position_.name,
              " reaches element ", ordinal);
  --above;
  return {above->first, &above->second};
}

// The element counts as committed even if no state came with it: it is the states that may be
// sparse, since any lower one reaches a later element by skipping.
void Pipeline::commit(const TakeRecord& take, std::uint64_t state_ordinal,
                      std::vector<std::byte> state) {
  auto& open = position_.open;
  open.erase(std::remove_if(open.begin(), open.end(), [&](const auto& o) { return same(o, take); }),
             open.end());
  if (!state.empty()) position_.states[state_ordinal] = std::move(state);
  prune();
}

void Pipeline::end(const TakeRecord& take) {
  ended_ = true;
  commit(take, 0, {});
}

// Keeps the highest state at or below every element that may be asked for again, and all above it.
void Pipeline::prune() {
  std::uint64_t lowest = position_.next;
  for (const auto& o : position_.open) lowest = std::min(lowest, o.ordinal);
  for (const auto& o : revisit_) lowest = std::min(lowest, o.ordinal);
  auto keep = position_.states.upper_bound(lowest);
  if (keep != position_.states.begin())
    position_.states.erase(position_.states.begin(), std::prev(keep));
}

PipelinePosition Pipeline::position() const {
  PipelinePosition now = position_;
  now.open.insert(now.open.end(), revisit_.begin(), revisit_.end());
  return now;
}

}  // namespace cairn
