#include "coordinator/journal/journal_state.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace cairn::journal {
namespace {

bool same(const TakeRecord& a, const TakeRecord& b) {
  return a.pipeline == b.pipeline && a.ordinal == b.ordinal && a.count == b.count;
}
bool has(const std::vector<TakeRecord>& takes, const TakeRecord& wanted) {
  return std::ranges::any_of(takes, [&](const TakeRecord& take) { return same(take, wanted); });
}

[[noreturn]] void refuse(const std::string& what) {
  throw DataLossError(str("the journal does not hold together: ", what));
}

}  // namespace

void JournalState::apply(Event event) {
  std::visit([this](auto&& one) { on(std::move(one)); }, std::move(event));
}

void JournalState::on(Opened&& event) { opened_ = std::move(event); }

void JournalState::on(FunctionMade&& event) {
  functions_.insert_or_assign(event.id, std::move(event));
}

void JournalState::on(VariableMade&& event) {
  const VariableId id = event.variable.id;
  if (id > variables_.size()) refuse(str("variable ", id, " is made before variable ", id - 1));
  if (id == variables_.size()) variables_.emplace_back();
  variables_[id] = std::move(event.variable);
}

void JournalState::on(DatasetMade&& event) {
  if (event.first_pipeline < pipelines_.size()) return;  // it is told again
  if (event.first_pipeline > pipelines_.size() ||
      event.positions.size() != event.descriptions.size())
    refuse(str("dataset \"", event.name, "\" has pipelines from ", event.first_pipeline,
               " on, and ", pipelines_.size(), " come before it"));
  for (const PipelinePosition& position : event.positions) pipelines_.emplace_back(position);
  datasets_.push_back(std::move(event));
}

// A new process has no rows until PsRebuilt says that it has them, unless it was a backup that has
// all of them. A successor rebuilds it even if its rows were already on the way.
void JournalState::on(ShardsPlaced&& event) {
  const std::vector<ShardLayout> before = std::exchange(shards_, std::move(event)).shards;
  for (std::size_t i = 0; i < std::min(before.size(), shards_.shards.size()); ++i)
    if (!has_rows_after(before[i], shards_.shards[i].primary))
      shards_.shards[i].primary.process = {};
}

Pipeline& JournalState::pipeline(std::uint64_t number) {
  if (number >= pipelines_.size())
    refuse(str("a closure takes elements of pipeline ", number, " of ", pipelines_.size()));
  return pipelines_[number];
}

void JournalState::spend(const ClosureSent& closure, const ClosureEnded* how) {
  for (std::size_t i = 0; i < closure.takes.size(); ++i) {
    const bool known = how != nullptr && i < how->states.size();
    pipeline(closure.takes[i].pipeline)
        .commit(closure.takes[i], known ? how->states[i].ordinal : 0,
                known ? how->states[i].bytes : std::vector<std::byte>());
  }
}

// One that is sent with other elements than before found the end of a pipeline, which it took from
// in vain.
void JournalState::on(ClosureSent&& event) {
  if (!functions_.contains(event.function))
    refuse(
        str("closure ", event.sequence, " runs function ", event.function, ", which is not there"));
  known_.add(event.sequence);
  ClosureSent& closure = open_[event.sequence];
  ClosureSent dropped;
  for (const TakeRecord& take : closure.takes)
    if (!has(event.takes, take)) dropped.takes.push_back(take);
  spend(dropped, nullptr);
  for (const TakeRecord& take : event.takes)
    if (take.count > 0 && !has(closure.takes, take) && !pipeline(take.pipeline).take_again(take))
      refuse(str("closure ", event.sequence, " takes elements from ", take.ordinal,
                 " on of pipeline ", take.pipeline, ", which another one has"));
  closure = std::move(event);
}

void JournalState::on(ClosureEnded&& event) {
  const auto ended = open_.find(event.sequence);
  if (ended == open_.end()) refuse(str("closure ", event.sequence, " ends, and was not sent"));
  spend(ended->second, &event);
  global_step_ += event.steps;
  if (event.updated) losses_.commit(event.sequence, event.sent_layout);
  open_.erase(ended);
  if (!round_) return;
  std::erase_if(round_->members, [&](const RoundNamed::Member& member) {
    return member.sequence == event.sequence;
  });
  if (round_->members.empty()) round_.reset();
}

void JournalState::on(RoundNamed&& event) {
  if (event.members.empty()) refuse(str("round ", event.round, " has no members"));
  for (const RoundNamed::Member& member : event.members)
    if (!open_.contains(member.sequence))
      refuse(str("closure ", member.sequence, " is a member of round ", event.round,
                 ", and was not sent"));
  round_ = std::move(event);
}

void JournalState::on(Announced&& event) {
  closures_below_ = std::max(closures_below_, event.closures_below);
  known_.raise(event.settled_below);
}

void JournalState::on(Known&& event) { known_.merge({event.settled_below, event.closures}); }

void JournalState::on(PsRebuilt&& event) {
  if (event.ps >= losses_.state().ps.size())
    refuse(str("ps ", event.ps, " of ", losses_.state().ps.size(), " is rebuilt"));
  std::size_t next = 0;
  for (ShardLayout& shard : shards_.shards) {
    if (shard.home != event.ps || next == event.processes.size()) continue;
    if (const ProcessIncarnation process = event.processes[next++]; process != 0)
      shard.primary.process = process;
  }
  losses_.rebuilt(event.ps, {.layout_version = event.layout_version,
                             .from = std::move(event.from),
                             .has = std::move(event.applied)});
}

void JournalState::on(Standing&& event) {
  global_step_ = event.global_step;
  closures_below_ = event.closures_below;
  losses_ = LossLedger(std::move(event.losses));
  // Datasets that were made later stand where they began.
  if (event.pipelines.size() > pipelines_.size())
    refuse(str("it tells of ", event.pipelines.size(), " pipelines, and ", pipelines_.size(),
               " were made"));
  for (std::size_t i = 0; i < event.pipelines.size(); ++i)
    pipelines_[i] = Pipeline(std::move(event.pipelines[i].position), event.pipelines[i].ended);
  open_.clear();
  round_.reset();
}

void JournalState::on(NoteMade&& event) {
  if (event.text.empty())
    notes_.erase(event.name);
  else
    notes_[event.name] = std::move(event.text);
}

Layout JournalState::layout() const {
  Layout layout{shards_.layout_version, shards_.seed, shards_.shards, variables_};
  return layout;
}

std::vector<Event> JournalState::made() const {
  std::vector<Event> events;
  for (const auto& [id, function] : functions_) events.emplace_back(function);
  for (const VariableLayout& variable : variables_) events.emplace_back(VariableMade{variable});
  for (const DatasetMade& dataset : datasets_) events.emplace_back(dataset);
  return events;
}

// Elements of open closures are taken by these, so that the positions are given without them.
std::vector<Event> JournalState::standing() const {
  Standing standing{global_step_, closures_below_, losses_.state(), {}};
  for (const Pipeline& pipeline : pipelines_)
    standing.pipelines.push_back({pipeline.position(), pipeline.ended()});
  std::vector<Event> events{opened_, shards_, sources_, Known{known_.low_watermark, known_.ranges},
                            std::move(standing)};
  for (const auto& [name, text] : notes_) events.emplace_back(NoteMade{name, text});
  for (const auto& [sequence, closure] : open_) events.emplace_back(closure);
  if (round_) events.emplace_back(*round_);
  return events;
}

}  // namespace cairn::journal
