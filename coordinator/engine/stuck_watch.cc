#include "coordinator/engine/stuck_watch.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/log.h"

namespace cairn {
namespace {
// A closure is forgotten once it was unseen for so long: between two attempts it is nowhere for a
// moment.
constexpr Duration kForgotten = std::chrono::seconds(10);
}  // namespace

// At a first attempt any change is progress. A closure that runs again passes through all stages
// anew, which must not hide that it never gets beyond one of them: then only what lies further than
// ever before counts.
void StuckWatch::note(Known& known, const ClosureProgress& closure, TimePoint now) {
  const bool further = closure.stage > known.furthest;
  const bool moved = closure.stage != known.stage ||
                     (closure.since >= Duration(0) && now - closure.since > known.seen);
  if (further || (moved && closure.attempts <= 1)) {
    known.progress =
        closure.since >= Duration(0) ? std::max(known.progress, now - closure.since) : now;
    known.tell_at = Duration(0);
  }
  known.furthest = std::max(known.furthest, closure.stage);
  known.stage = closure.stage;
  known.attempts = closure.attempts;
  known.seen = now;
}

std::vector<StuckClosure> StuckWatch::look(TimePoint now, std::vector<ClosureProgress> closures) {
  std::vector<StuckClosure> stuck;
  for (ClosureProgress& closure : closures) {
    const auto [at, fresh] = known_.try_emplace(closure.sequence);
    Known& known = at->second;
    if (fresh) {
      const Duration since =
          closure.attempts <= 1 ? std::max(closure.since, Duration(0)) : Duration(0);
      known = {now - since, now, closure.stage, closure.stage, closure.attempts, Duration(0)};
    }
    note(known, closure, now);
    StuckClosure one{std::move(closure), now - known.progress, false};
    if (one.still < after_) continue;
    one.to_tell = one.still >= known.tell_at;
    // Reported again when the time has doubled, so that a night of waiting fills no log.
    if (one.to_tell) known.tell_at = 2 * one.still;
    stuck.push_back(std::move(one));
  }
  std::erase_if(known_, [now](const auto& entry) { return now - entry.second.seen > kForgotten; });
  return stuck;
}

std::string stuck_text(const StuckClosure& stuck) {
  const ClosureProgress& at = stuck.closure;
  const std::string step = at.step < 0 ? std::string() : str(", step ", at.step);
  const std::string place =
      at.worker.empty() ? std::string("queued") : str("on ", at.worker, " lane ", at.lane);
  return str("closure ", at.sequence, " (", at.function, step, ") has made no progress for ",
             fixed(std::chrono::duration<double>(stuck.still).count(), 0), " s: ", place, ", ",
             at.waits_for);
}

}  // namespace cairn
