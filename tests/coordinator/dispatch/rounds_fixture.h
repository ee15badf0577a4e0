// Parts of an engine under synchronous(b), one ps and two workers unless a test says otherwise.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "coordinator/dispatch/rounds_policy.h"
#include "tests/coordinator/engine/part_fixture.h"

namespace cairn {

inline EngineOptions in_rounds(std::uint32_t backups) {
  EngineOptions options;
  options.consistency = Consistency::synchronous(backups);
  return options;
}

struct InRounds : PartTest {
  explicit InRounds(std::uint32_t backups = 0, std::size_t workers = 2)
      : PartTest(in_rounds(backups)) {
    start(1, workers);
  }

  void schedule_many(int closures) {
    for (int i = 0; i < closures; ++i) schedule();
    send();
  }
  std::shared_ptr<Closure> schedule_of(const std::shared_ptr<RegisteredFunction>& other) {
    auto closure = std::make_shared<Closure>();
    closure->function = other;
    session.queue.put(closure);
    return closure;
  }
  std::shared_ptr<RegisteredFunction> function_like(const char* name) {
    auto made = std::make_shared<RegisteredFunction>(*function);
    made->id = ++functions_;
    made->name = name;
    return made;
  }
  const RoundsPolicy::Members& members_of_the_round() const {
    return dynamic_cast<const RoundsPolicy&>(*policy).open_members();
  }
  std::vector<std::string> applied() { return fake_ps(0).calls_of("apply"); }
  bool done(const std::shared_ptr<Closure>& closure) {
    std::lock_guard hold(session.queue.board()->mutex);
    return closure->outcome == Closure::Outcome::kReady;
  }
  // The program looks whether all is done, and so waits.
  void ask() {
    session.queue.done();
    send();
  }

 private:
  std::uint32_t functions_ = 0;
};

}  // namespace cairn
