#include "coordinator/cluster/session.h"

#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/base/random.h"

namespace cairn {
namespace {

// Not the clock alone: two coordinators of one millisecond must differ. Odd, thus never 0, which
// means "no session" on the wire.
std::uint64_t draw_number(const Clock& clock, const void* where) {
  const auto time = static_cast<std::uint64_t>(clock.wall_microseconds());
  return random_key(time, reinterpret_cast<std::uintptr_t>(where)) >> 1 | 1;
}

}  // namespace

Session::Session(EngineParts given, EngineOptions told, std::shared_ptr<Waiting> waiting,
                 std::function<void()> wake)
    : parts(given),
      options(std::move(told)),
      born(parts.clock.now()),
      number(options.session.number != 0 ? options.session.number : draw_number(parts.clock, this)),
      queue(options.queue_capacity, std::move(waiting), std::move(wake)) {}

double Session::seconds_since(TimePoint then) const {
  return std::chrono::duration<double>(parts.clock.now() - then).count();
}

std::uint64_t Session::below_this_term() const {
  constexpr int kBitsOfNumbers = 40;  // that one term can give
  return (term.number - 1) << kBitsOfNumbers;
}

void Session::give_way(const std::string& why) {
  queue.fail_all(std::make_exception_ptr(FailedPreconditionError(why)));
  throw FailedPreconditionError(why);
}

}  // namespace cairn
