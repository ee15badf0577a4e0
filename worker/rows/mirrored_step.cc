#include "worker/rows/mirrored_step.h"

#include <kj/async.h>

#include <utility>

namespace cairn::worker {
namespace {

// By these numbers shards recognise a closure's two pushes when they are repeated, whichever member
// pushes the mirrored part.
constexpr std::uint32_t kShare = 0, kRows = 1;

}  // namespace

std::set<VariableId> mirrored_variables(const Graph& graph,
                                        const std::vector<VariableId>& variables) {
  std::set<VariableId> mirrored;
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (graph.variables[i].mirrored) mirrored.insert(variables[i]);
  return mirrored;
}

// While a round is open no ps changes what is mirrored, so that what is fetched is as the copies
// are that were here.
rpc::Task<void> MirroredStep::have(StepContext step, std::vector<VariableId> variables) {
  co_await turn_.turn();
  if (!std::exchange(settled_, true) && (role_.base == 0 || mirror_.round() != role_.base))
    mirror_.forget();
  std::erase_if(variables, [this](VariableId one) { return mirror_.has(one); });
  if (!variables.empty() && role_.ahead)
    throw AbortedError(str("closure ", step.closure, " needs copies of round ", role_.base,
                           ", which are not here: run it again when that is applied"));
  if (!variables.empty()) co_await mirror_.fetch(store_, step, std::move(variables));
}

rpc::Task<void> MirroredStep::pull(StepContext step, std::span<Read> reads) {
  std::vector<Read> copied, remote;
  for (const Read& read : reads)
    (mirrored_.contains(read.variable) ? copied : remote).push_back(read);
  std::vector<VariableId> wanted;
  for (const Read& read : copied) wanted.push_back(read.variable);
  kj::Promise<void> pulled = remote_.pull(step, remote).start();
  co_await have(step, std::move(wanted));
  co_await kj::mv(pulled);
  mirror_.read(copied);
  auto from_copy = copied.begin(), from_ps = remote.begin();
  for (Read& read : reads)
    read = std::move(mirrored_.contains(read.variable) ? *from_copy++ : *from_ps++);
}

// The copies change while the pushes travel: a step that fails after that breaks its group, and the
// copies of a round that was not applied are of no use to the next.
rpc::Task<void> MirroredStep::push(StepContext step, std::span<Update> updates) {
  std::vector<Update> of_copies, rows;
  for (const Update& update : updates)
    (mirrored_.contains(update.variable) ? of_copies : rows).push_back(update);
  updated_ = updated_ || !updates.empty();
  StepContext at_once = step;
  at_once.round = 0;
  const std::uint64_t round = step.round;
  std::vector<VariableId> wanted;
  for (const Update& update : of_copies) wanted.push_back(update.variable);
  co_await have(step, std::move(wanted));
  kj::Promise<void> pushed = kj::READY_NOW;
  if (!rows.empty()) pushed = remote_.push_as(at_once, rows, kRows).start();
  kj::Promise<void> told = kj::READY_NOW;
  if (role_.first && !of_copies.empty()) told = remote_.push_as(step, of_copies, kShare).start();
  mirror_.apply(of_copies, round, store_.routing()->encoding());
  if (role_.check_copies) fingerprint_ = mirror_.fingerprint(mirrored_);
  turn_.pass_on();
  co_await kj::mv(pushed);
  co_await kj::mv(told);
}

// If this member does not push the update, no ps gets it from here, and it may lie anywhere.
std::shared_ptr<std::byte> MirroredStep::update_place(VariableId variable, std::size_t bytes) {
  if (mirrored_.contains(variable) && !role_.first) return nullptr;
  return remote_.update_place(variable, bytes);
}

}  // namespace cairn::worker
