#include "model/steps/step_loop.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/look_up.h"

namespace cairn {

void StepLoop::go_on_behind(std::int64_t step) {
  calls_.clear();
  begun_ = ended_ = step;
}

StepLoop::End StepLoop::run(std::int64_t until, const Program& program) {
  End end = End::kAllTaken;
  try {
    raising_the_cause(runner_, [&] { end = turns(until, program); });
  } catch (const NotFiniteError& error) {
    if (!program.not_finite) throw;
    program.not_finite(error);
    abandon_like_ones();
    end = End::kNotFinite;
  }
  return end;
}

// Other steps that ran beside the one whose loss is not finite may end as it did.
void StepLoop::abandon_like_ones() {
  try {
    abandon();
  } catch (const NotFiniteError&) {
  }
}

StepLoop::End StepLoop::turns(std::int64_t until, const Program& program) {
  while (ended_ < until) {
    const bool stopping = program.is_stopping && program.is_stopping();
    if (stopping && calls_.empty()) return End::kStopped;
    if (!stopping) begin(until, program);
    take(program);
    if (program.turn) program.turn();
    look_up();
    if (program.obeys_stop && runner_.stop_requested()) return End::kInterrupted;
    if (runner_.interrupted() != 0) return End::kInterrupted;
  }
  return End::kAllTaken;
}

void StepLoop::begin(std::int64_t until, const Program& program) {
  const std::int64_t most = std::min(until, ended_ + ahead_);
  while (begun_ < most && (!program.may_begin || program.may_begin())) {
    calls_.push_back(program.begin(until - begun_));
    begun_ += calls_.back().steps;
  }
}

// Waits a little for the first, and not longer, since signals are looked for between two turns. Of
// those that are there it takes a part, so that further calls are begun before nothing is left to
// run, however long the program takes over each.
void StepLoop::take(const Program& program) {
  if (calls_.empty() || !calls_.front().result.ready_soon()) return;
  const std::int64_t most = ended_ + std::max<std::int64_t>(1, ahead_ / 8);
  do {
    const Call call = std::move(calls_.front());
    calls_.pop_front();
    const std::vector<Tensor> values = call.result.get_all();
    ended_ += call.steps;
    program.take(call.steps, values);
  } while (ended_ < most && !calls_.empty() && calls_.front().result.ready());
}

void StepLoop::abandon() {
  calls_.clear();
  runner_.abandon();
}

}  // namespace cairn
