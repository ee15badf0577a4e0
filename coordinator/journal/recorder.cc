#include "coordinator/journal/recorder.h"

#include <algorithm>
#include <utility>

#include "coordinator/cluster/shard_client.h"
#include "coordinator/journal/journal.h"
#include "core/base/machine.h"

namespace cairn {
namespace {

using namespace journal;

FunctionMade made_of(const RegisteredFunction& function) {
  const ConcreteFunction& concrete = *function.concrete;
  return {function.id, function.name, concrete.bytes, concrete.takes_worker_index,
          concrete.replicas};
}

ClosureSent sent_of(const Closure& closure) {
  ClosureSent event{.sequence = closure.sequence,
                    .function = closure.function->id,
                    .oldest_layout = closure.oldest_layout,
                    .global_step = closure.global_step,
                    .arguments = closure.arguments,
                    .per_worker = closure.per_worker,
                    .takes = closure.takes};
  for (const auto& dataset : closure.datasets) event.datasets.push_back(dataset->first_pipeline());
  return event;
}

}  // namespace

Recorder::Recorder(Session& session)
    : session_(session), journal_(session.options.session.journal) {}

const JournalState* Recorder::found() const {
  return on() && journal_->found() ? &*journal_->found() : nullptr;
}

rpc::Task<void> Recorder::begin(std::size_t ps) {
  if (!on()) co_return;
  co_await journal_->read_again(session_.parts.reactor, session_.parts.offload);
  if (const JournalState* state = found()) {
    for (const auto& [id, function] : state->functions()) functions_.insert(id);
    layout_ = std::make_shared<const Layout>(state->layout());
    closures_below_ = state->closures_below();
    settled_.kept = settled_.recorded = state->known().low_watermark;
    resuming_ = true;
  }
  Opened opened{session_.options.cluster_id, session_.number, session_.term, process_text(),
                session_.options.consistency.text()};
  co_await journal_->begin(session_.parts.reactor, session_.parts.offload, std::move(opened), ps);
}

void Recorder::resume(ResumedRun run, const std::vector<std::shared_ptr<Closure>>& open) {
  run_ = run;
  for (const auto& closure : open) {
    open_.insert(closure->sequence);
    resumed_.insert(closure->sequence);
  }
}

rpc::Task<void> Recorder::resumed_ended() {
  while (!resumed_.empty()) {
    verify_written();  // without a journal no ps is attached, and no closure is sent
    co_await session_.changed.wait();
  }
}

// One group of events: a successor has both, or finds the same closures on the shards again.
void Recorder::hand_over(const ProgressBook& progress, const LossLedger& losses,
                         const std::vector<std::uint64_t>& unrecorded) {
  run_->global_step = progress.global_step();
  run_->unrecorded = unrecorded.size();
  if (!unrecorded.empty()) {
    AppliedClosures all;
    for (const std::uint64_t closure : unrecorded) all.add(closure);
    journal_->note(Known{0, all.ranges});
  }
  standing(progress.global_step(), losses, progress);
  resuming_ = false;
}

void Recorder::dataset(const PerWorkerDataset& dataset, const ProgressBook& progress) {
  if (!on()) return;
  DatasetMade event{.name = dataset.name(),
                    .first_pipeline = dataset.first_pipeline(),
                    .spec = dataset.element_spec(),
                    .shared = dataset.shared()};
  for (std::uint64_t i = 0; i < dataset.pipelines(); ++i) {
    const std::uint64_t pipeline = dataset.first_pipeline() + i;
    event.descriptions.push_back(dataset.description(pipeline));
    event.positions.push_back(progress.pipelines().at(pipeline).position());
  }
  journal_->note(std::move(event));
}

rpc::Task<void> Recorder::keep_layout(std::shared_ptr<const Layout> layout) {
  if (!on()) co_return;
  if (!layout_ || layout_->version < layout->version) {
    const std::size_t known = layout_ ? layout_->variables.size() : 0;
    for (const VariableLayout& variable : layout->variables)
      if (variable.id >= known || layout_->variables[variable.id].rule != variable.rule)
        journal_->note(VariableMade{variable});
    journal_->note(ShardsPlaced{layout->version, layout->seed, layout->shards});
    layout_ = std::move(layout);
  }
  co_await journal_->kept();
}

// A closure that runs again is recorded again only if it has other elements, as another lane found
// the end of a pipeline.
void Recorder::sent(const Closure& closure) {
  if (!on() || (!closure.function->updates && closure.takes.empty())) return;
  if (!open_.insert(closure.sequence).second && closure.datasets.empty()) return;
  if (functions_.insert(closure.function->id).second) journal_->note(made_of(*closure.function));
  journal_->note(sent_of(closure));
}

void Recorder::ended(const Closure& closure, bool updated, std::int64_t steps,
                     const std::vector<LaneReply::State>& states) {
  if (!on() || open_.erase(closure.sequence) == 0) return;
  ClosureEnded event{closure.sequence, updated, steps, closure.sent_layout, {}};
  for (const LaneReply::State& state : states) event.states.push_back({state.ordinal, state.bytes});
  journal_->note(std::move(event));
  if (resumed_.erase(closure.sequence) > 0 && resumed_.empty()) session_.changed.notify_all();
}

void Recorder::round(RoundNamed event) {
  if (on()) journal_->note(std::move(event));
}

void Recorder::verify_written() const {
  if (on()) journal_->verify_written();
}

// Under HybridStrategy rows are pushed before the round of their closure is named. If a successor
// did not know of the closure, nobody would apply the round's part of it.
rpc::Task<void> Recorder::written() {
  if (!on()) co_return;
  if (session_.options.consistency.text() == "hybrid") co_return co_await journal_->kept();
  co_await journal_->written();
}

rpc::Task<void> Recorder::kept() {
  if (on()) co_await journal_->kept();
}

rpc::Task<void> Recorder::keep_announced(std::uint64_t closures_below) {
  if (!on()) co_return;
  if (closures_below > closures_below_) {
    closures_below_ = closures_below;
    journal_->note(Announced{closures_below, settled_.kept});
  }
  if (closures_below <= kept_below_) co_return;
  co_await journal_->kept();
  kept_below_ = std::max(kept_below_, closures_below);
}

// A shard that forgot a closure of whose end the journal may yet lose sight could not tell a
// successor any more that it has the closure. Nor may it forget those that a successor is about to
// ask for.
std::uint64_t Recorder::settled(std::uint64_t low_watermark) {
  if (!on()) return low_watermark;
  if (resuming_) return settled_.kept;
  if (journal_->are_kept(settled_.events)) settled_.kept = settled_.recorded;
  if (settled_.kept == settled_.recorded && low_watermark > settled_.recorded) {
    journal_->note(Announced{closures_below_, low_watermark});
    settled_.recorded = low_watermark;
    settled_.events = journal_->noted();
  }
  return settled_.kept;
}

rpc::Task<void> Recorder::keep_rebuilt(std::size_t ps, std::vector<ProcessIncarnation> processes,
                                       LossLedger::Rebuilt how) {
  if (!on()) co_return;
  journal_->note(PsRebuilt{static_cast<std::uint32_t>(ps), how.layout_version, std::move(how.from),
                           std::move(how.has), std::move(processes)});
  co_await journal_->kept();
}

void Recorder::sources(SourcesAre sources) {
  if (on()) journal_->note(std::move(sources));
}

void Recorder::standing(std::int64_t global_step, const LossLedger& losses,
                        const ProgressBook& progress) {
  if (!on()) return;
  Standing event{global_step, closures_below_, losses.state(), {}};
  for (const Pipeline& pipeline : progress.pipelines())
    event.pipelines.push_back({pipeline.position(), pipeline.ended()});
  journal_->note(std::move(event));
}

void Recorder::note(const std::string& name, const std::string& text) {
  if (on()) journal_->note(NoteMade{name, text});
}

void Recorder::cut() {
  if (on()) journal_->begin_anew();
}

}  // namespace cairn
