#include "coordinator/checkpoint/cut.h"

#include <kj/common.h>

#include "core/base/log.h"

namespace cairn {
namespace {
constexpr Duration kPauseBetweenCuts = std::chrono::milliseconds(50);
// So long pushes are held at most for the marks. A mark copies nothing, but it waits for its turn
// on the shard's thread.
constexpr Duration kMarkDeadline = std::chrono::seconds(30);

// Rethrows the error of a cut that came to nothing, unless a task was lost, or was too slow to hold
// its pushes or to mark: those are no fault of the program's.
void verify_is_a_loss(const std::exception_ptr& error) {
  const ErrorParts parts = error_parts(error);
  if (parts.code == Code::kDeadlineExceeded)
    return log_warning("a checkpoint waits: ", parts.message);
  if (parts.code != Code::kUnavailable) std::rethrow_exception(error);
}
}  // namespace

bool CutMaker::may_be_made() const {
  return !scheduler_.any_torn() && members_.all_ps_ready() && !lock_.held() &&
         members_.still_restoring() == nullptr;
}

// A closure that a lost worker left half done is completed first, by its retry.
rpc::Task<Cut> CutMaker::make(std::uint64_t checkpoint, CutBase base) {
  for (;;) {
    const auto waits_no_more = kj::defer([this] { scheduler_.cut_waits(false); });
    while (!may_be_made()) {
      scheduler_.cut_waits(true);
      if (const Ps* ps = members_.still_restoring(); ps != nullptr && ps->coming.error != nullptr)
        std::rethrow_exception(ps->coming.error);
      for (auto& ps : members_.ps)
        if (ps->lost_for_good)
          throw UnavailableError(
              str("no checkpoint can be made without ", ps->name, ": ", ps->trouble), ps->name);
      co_await session_.changed.wait();
    }
    scheduler_.cut_waits(false);
    const TimePoint held = session_.parts.clock.now();
    Cut cut;
    cut.id = checkpoint;
    // A shard that marked for an attempt that came to nothing marks anew.
    cut.mark = session_.below_this_term() + ++marks_;
    std::exception_ptr error;
    bool made = false;
    try {
      co_await scheduler_.hold_pushes();
      made = co_await mark_shards(&cut, base);
    } catch (...) {
      error = std::current_exception();
    }
    scheduler_.release_pushes();
    if (made) {
      const double seconds = session_.seconds_since(held);
      session_.stats.edit([seconds](EngineStats& stats) { stats.last_cut_seconds = seconds; });
      co_return cut;
    }
    sources_.writing = false;
    session_.changed.notify_all();
    drop(cut.mark);
    if (error) verify_is_a_loss(error);
    // A task was lost meanwhile. Once that is mended, the cut is made anew.
    co_await session_.parts.reactor.sleep(kPauseBetweenCuts);
  }
}

// False: meanwhile a task was lost, or failed half way.
rpc::Task<bool> CutMaker::mark_shards(Cut* cut, CutBase base) {
  if (!may_be_made()) co_return false;
  sources_.writing = true;
  cut->layout = tables_.synced();
  cut->attached = members_.times_attached();
  std::vector<kj::Promise<ShardMark>> marks;
  for (const auto& ps : members_.ps)
    for (const auto& shard : ps->shards) {
      std::string what = str("marking a checkpoint's cut on ", ps->name, " shard ", shard->shard());
      marks.push_back(session_.parts.reactor.with_deadline(shard->mark(cut->mark, base),
                                                           kMarkDeadline, std::move(what)));
    }
  for (auto& promise : marks) {
    ShardMark mark = co_await kj::mv(promise);
    cut->applied.merge(mark.applied);
    cut->delta = cut->delta || mark.delta;
  }
  // A process that was attached again meanwhile has no mark.
  if (scheduler_.any_torn() || !members_.all_ps_ready() ||
      members_.times_attached() != cut->attached || !scheduler_.all_committed(cut->applied))
    co_return false;
  take_positions(*cut);
  co_return true;
}

// At this moment no push is under way, and what the shards have applied is committed.
void CutMaker::take_positions(Cut& cut) const {
  cut.holdings = losses_.holdings();
  cut.global_step = progress_.global_step();
  cut.lost_updates = losses_.lost_on_the_way();
  cut.positions = progress_.positions();
}

void CutMaker::drop(std::uint64_t mark) {
  // Also on shards that are not attached: with replicas a process may stay connected while another
  // one that had shards of the same ps is lost.
  for (const auto& ps : members_.ps)
    for (const PlacedShard& shard : ps->placed)
      for (const ShardPlace& place : shard.places) {
        if (!place.client) continue;
        // Errors are of no interest: a shard that is lost has no mark.
        auto dropped = place.client->drop_mark(mark).start().catch_([](kj::Exception&&) {});
        session_.tasks.spawn("drop a mark", kj::mv(dropped));
      }
}

}  // namespace cairn
