// StepLoop: takes a number of steps with a StepRunner, as many of them at once as keep all workers
// busy. The one loop under Model::fit(), evaluate() and `cairn train`.
//
//   Bound        so many steps are under way, begun and not ended, as the loop was made for.
//   Order        results are taken in the order in which their calls were begun.
//   Stop         if the program is_stopping(), no call is begun, and those under way are finished.
//   Interrupt    a signal, or `cairn stop`, ends the loop between two results; the program then
//                calls abandon(), or waits.
//   Failure      the first error of a call ends the loop. Calls that were cancelled are so because
//                of another one's error: that one is raised.
//   Thread       one, the runner's.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "core/base/error.h"
#include "model/steps/step_runner.h"

namespace cairn {

class StepLoop {
 public:
  // One call of a function, which takes one step or more.
  struct Call {
    std::int64_t steps = 1;
    StepResult result;
  };
  // Makes the calls, and takes their results.
  struct Program {
    // Begins the next call; `left`: the steps that are still to be begun.
    std::function<Call(std::int64_t left)> begin;
    // Takes what a call has returned. ended() counts it already.
    std::function<void(std::int64_t steps, const std::vector<Tensor>& values)> take;
    // Empty: a call may always begin; training never stops by itself; nothing is done in a turn.
    std::function<bool()> may_begin = {};
    std::function<bool()> is_stopping = {};
    // Called after every look at the results, several times a second at least.
    std::function<void()> turn = {};
    // Takes the error of a step whose loss was not finite, after which the loop ends in order with
    // everything abandoned. Empty: it is an error as any other.
    std::function<void(const NotFiniteError& error)> not_finite = {};
    bool obeys_stop = false;  // `cairn stop` ends the loop; else that command fails
  };
  enum class End : std::uint8_t { kAllTaken, kStopped, kInterrupted, kNotFinite };

  // `ahead`: how many steps may be under way. The runner outlives the loop.
  StepLoop(StepRunner& runner, std::int64_t ahead) : runner_(runner), ahead_(ahead) {}

  // Goes on behind `step`, whatever was counted before; nothing is under way.
  void go_on_behind(std::int64_t step);
  // Takes steps until `until` of them have ended.
  //   Errors  those of the program, and of its steps.
  End run(std::int64_t until, const Program& program);
  // Begins nothing any more, and waits for what runs; the results are dropped.
  //   Errors  the first of what ran.
  void abandon();

  std::int64_t begun() const { return begun_; }  // steps, those that have ended included
  std::int64_t ended() const { return ended_; }
  bool under_way() const { return !calls_.empty(); }

 private:
  void begin(std::int64_t until, const Program& program);
  void take(const Program& program);
  End turns(std::int64_t until, const Program& program);
  void abandon_like_ones();

  StepRunner& runner_;
  const std::int64_t ahead_;
  std::int64_t begun_ = 0, ended_ = 0;
  std::deque<Call> calls_;  // under way, the oldest first
};

// Runs `act`. If that finds something cancelled, raises the error for which it was, which is what
// the user has to know.
template <typename Act>
void raising_the_cause(StepRunner& runner, Act act) {
  try {
    act();
  } catch (const CancelledError&) {
    runner.raise_failure();
    throw;
  }
}

}  // namespace cairn
