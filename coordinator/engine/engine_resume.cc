// The engine goes on where an earlier coordinator of the session stood, as the journal tells: with
// its books, and with the closures that it had sent, which are run to their end under their old
// numbers. Shards know which of their pushes they have.

#include <algorithm>
#include <set>
#include <utility>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "coordinator/engine/engine.h"
#include "coordinator/journal/journal_state.h"
#include "core/base/log.h"

namespace cairn {
namespace {

std::shared_ptr<const PerWorkerDataset> dataset_of(const journal::DatasetMade& made) {
  return std::make_shared<const PerWorkerDataset>(made.name, made.first_pipeline, made.descriptions,
                                                  made.spec, made.shared);
}

// Consistencies under which shards get the same pushes of a closure: by another one they would take
// what they have for something else, and apply it again.
enum class Pushes : std::uint8_t { kAlone, kShares, kSharesAndRows };
Pushes pushes_of(const std::string& consistency) {
  if (consistency == HybridConsistency::make().text()) return Pushes::kSharesAndRows;
  return consistency.starts_with("synchronous") ? Pushes::kShares : Pushes::kAlone;
}

// So many closures of which the journal does not know are named one by one.
constexpr std::size_t kToldOneByOne = 100;

StepsOfUpdate steps_of(
    const std::map<std::uint32_t, std::shared_ptr<const RegisteredFunction>>& functions) {
  std::set<std::int64_t> all;
  for (const auto& [id, function] : functions)
    if (function->updates) all.insert(function->steps);
  return all.empty() ? StepsOfUpdate{} : StepsOfUpdate{*all.begin(), all.size() > 1};
}

}  // namespace

// Before anything is dialled.
void Engine::verify_found() const {
  if (!recorder_.on()) return;
  const journal::JournalState* found = recorder_.found();
  if (found == nullptr) return;
  const std::size_t ps = found->losses().state().ps.size();
  if (ps != members_.ps.size())
    throw FailedPreconditionError(str("the run that the journal tells of has ", ps,
                                      " ps, and this cluster ", members_.ps.size(),
                                      ": give the cluster as many, or another journal"));
  const std::string before = found->opened().consistency, now = session_.options.consistency.text();
  if (!found->open().empty() && pushes_of(before) != pushes_of(now))
    throw FailedPreconditionError(str("the run that the journal tells of is under ", before,
                                      ", this program under ", now, ", and ", found->open().size(),
                                      " of its closures had been sent and not ended, which ",
                                      "may be half applied: start the program under ", before,
                                      " until it has gone on, or give it another journal"));
}

// The processes are those that the earlier coordinator knew: one that is new now is found to be so
// as it is attached, and is rebuilt.
Layout Engine::found_layout(const std::vector<ShardLayout>& connected) const {
  Layout layout = recorder_.found()->layout();
  if (layout.shards.empty()) layout.shards = connected;  // it ended before any shard was configured
  if (layout.version == 0) layout.version = 1;
  if (layout.shards.size() != connected.size())
    throw FailedPreconditionError(str("the run that the journal tells of has ",
                                      layout.shards.size(), " shards, and the ps of this cluster ",
                                      connected.size(), ": start each with as many as it had"));
  for (std::size_t i = 0; i < connected.size(); ++i) {
    ShardLayout& shard = layout.shards[i];
    if (shard.home != connected[i].home)
      throw FailedPreconditionError(str("shard ", i, " is on ps ", connected[i].home,
                                        ", and in the run that the journal tells of on ps ",
                                        shard.home,
                                        ": start each ps with as many shards as it had"));
    // The store is newer than the journal where the earlier coordinator died between the two, and
    // then by one change.
    if (const auto& kept = tables_.config().found(); kept.size() == connected.size()) {
      ShardLayout before = std::exchange(shard, kept[i]);
      if (!has_rows_after(before, shard.primary)) shard.primary.process = {};
    }
    const auto addressed = [this](ShardReplica& replica) {
      if (replica.ps < members_.ps.size()) replica.address = members_.ps[replica.ps]->address;
    };
    addressed(shard.primary);
    for (ShardReplica& backup : shard.backups) addressed(backup);
  }
  return layout;
}

rpc::Task<void> Engine::resume_books() {
  const journal::JournalState* found = recorder_.found();
  if (found == nullptr) co_return;
  co_await checkpointer_.resume(found->sources());
  books_.losses = LossLedger(found->losses().state());
  std::vector<Pipeline> pipelines;
  for (const Pipeline& pipeline : found->pipelines())
    pipelines.emplace_back(pipeline.position(), pipeline.ended());
  std::vector<std::shared_ptr<const PerWorkerDataset>> datasets;
  for (const journal::DatasetMade& made : found->datasets()) datasets.push_back(dataset_of(made));
  books_.progress.resume(found->global_step(), std::move(pipelines), datasets);
  announcer_.resume(found->closures_below());
  const FoundFunctions functions = found_functions();
  ps_.group.unrecorded().steps = steps_of(functions);
  const auto open = open_closures(functions);
  recorder_.resume({found->global_step(), session_.term.number, open.size(), 0, found->notes()},
                   open);
  std::set<std::uint64_t> being_applied;
  if (found->round())
    for (const auto& member : found->round()->members) being_applied.insert(member.sequence);
  queue().resume(open, std::max<std::uint64_t>(found->closures_below(), 1), being_applied);
  policy_->resume(open, found->round());
  for (const auto& closure : open) {
    books_.progress.take_again(*closure);
    outcomes_.torn(*closure);
  }
  session_.stats.publish(books_.losses);
  session_.stats.edit(
      [&](EngineStats& stats) { stats.global_step = books_.progress.global_step(); });
  log_info("going on with the run that ", found->opened().holder, " had, at step ",
           found->global_step(), ", with ", open.size(), " closures that it had sent");
}

Engine::FoundFunctions Engine::found_functions() {
  const auto layout = tables_.registry().layout();
  FoundFunctions functions;
  for (const auto& [id, made] : recorder_.found()->functions())
    functions[id] = functions_.find_again(made, *layout);
  return functions;
}

// Those that update nothing are not run: nobody waits for their results, and their elements are
// given out again.
std::vector<std::shared_ptr<Closure>> Engine::open_closures(const FoundFunctions& functions) {
  const journal::JournalState& found = *recorder_.found();
  std::map<std::uint64_t, std::shared_ptr<const PerWorkerDataset>> datasets;
  for (const journal::DatasetMade& made : found.datasets())
    datasets[made.first_pipeline] = dataset_of(made);
  std::vector<std::shared_ptr<Closure>> open;
  for (const auto& [sequence, sent] : found.open()) {
    const auto& function = functions.at(sent.function);
    if (!function->updates) continue;
    auto closure = std::make_shared<Closure>();
    closure->sequence = sequence;
    closure->function = function;
    closure->arguments = sent.arguments;
    closure->per_worker = sent.per_worker;
    for (const std::uint64_t first : sent.datasets) {
      const auto dataset = datasets.find(first);
      if (dataset == datasets.end())
        throw DataLossError(str("closure ", sequence,
                                " of the journal takes elements of a dataset "
                                "that the journal does not have"));
      closure->datasets.push_back(dataset->second);
    }
    closure->oldest_layout = sent.oldest_layout;
    closure->takes = sent.takes;
    closure->global_step = sent.global_step;
    closure->attempts = 1;
    open.push_back(std::move(closure));
  }
  return open;
}

rpc::Task<void> Engine::finish_resumed() {
  if (recorder_.found() == nullptr) co_return;
  co_await recorder_.resumed_ended();
  const std::vector<UnrecordedClosure> found = co_await ps_.group.unrecorded().all_asked();
  const std::vector<std::uint64_t> adopted = adopt(found);
  const auto& restored = sources_.restored;
  const bool other = restored && restored->session != session_.number;
  books_.progress.hand_over(other ? restored->positions : std::vector<PipelinePosition>());
  recorder_.hand_over(books_.progress, books_.losses, adopted);
  session_.stats.edit(
      [&](EngineStats& stats) { stats.global_step = books_.progress.global_step(); });
}

// Returns the numbers of the closures that were adopted.
std::vector<std::uint64_t> Engine::adopt(const std::vector<UnrecordedClosure>& unrecorded) {
  std::vector<std::uint64_t> numbers, lacking(members_.ps.size());
  for (const UnrecordedClosure& closure : unrecorded) {
    numbers.push_back(closure.sequence);
    std::string lack;
    for (const std::size_t ps : closure.lacking) {
      ++lacking[ps];
      lack += str(lack.empty() ? "" : ", ", members_.ps[ps]->name);
    }
    if (numbers.size() <= kToldOneByOne)
      log_warning("closure ", closure.sequence, " is not in the journal, and ps have it",
                  lack.empty() ? "" : "; lost on " + lack);
  }
  if (numbers.empty()) return numbers;
  const StepsOfUpdate steps = ps_.group.unrecorded().steps;
  books_.progress.adopt_steps(static_cast<std::int64_t>(numbers.size()) * steps.least);
  books_.losses.adopt(numbers.size(), lacking);
  for (std::size_t ps = 0; ps < lacking.size(); ++ps)
    if (lacking[ps] > 0)
      books_.losses.told(members_.ps[ps]->name, "the journal had lost closures with the power",
                         session_.uptime(), lacking[ps]);
  session_.stats.publish(books_.losses);
  log_warning("the journal lacks ", numbers.size(), " closures that ps have, ", numbers.front(),
              " to ", numbers.back(), ": its newest part went with the power of its machine. They ",
              "count as updates, and their elements are given out again",
              steps.differ
                  ? str(". The step is only known to lie that far on at least: each counts as ",
                        steps.least, ", and functions here count differently")
                  : "");
  return numbers;
}

}  // namespace cairn
