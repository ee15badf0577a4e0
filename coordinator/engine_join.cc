// Joining a ps or a worker: one coordinator has a cluster at a time (rpc/holder.h).

#include "coordinator/engine.h"
#include "core/base/log.h"
#include "core/base/machine.h"

namespace cairn {
namespace {

constexpr Duration kJoinDeadline = std::chrono::seconds(5);
constexpr Duration kAskAgain = std::chrono::milliseconds(100);

std::string held(const std::string& name, const std::string& address, const std::string& holder) {
  return str(name, " at ", address, " works for another coordinator: ", holder,
             ". End that one, or take its place with --take-over (C++: EngineOptions::take_over)");
}

}  // namespace

// A coordinator that was just killed leaves a connection that may look alive until its heartbeats
// are missed: at the start that is waited for, twice as long. One that is still heard of then is at
// work.
template <typename Client, typename Member>
rpc::Task<void> Engine::join(Client* client, Member* member, std::uint64_t process) {
  const Duration silence = options_.heartbeat_interval * options_.heartbeats_missed_max;
  const TimePoint patience = parts_.clock.now() + (started_ ? Duration(0) : 2 * silence);
  for (bool told = false;; told = true) {
    const std::string what = str("joining ", member->name);
    const JoinRequest wanted{session_, process_text(), silence, options_.take_over};
    const JoinAnswer answer =
        co_await parts_.reactor.with_deadline(client->join(wanted), kJoinDeadline, what);
    // and has forgotten us, if it was configured for another since
    const bool ours = member->served == process;
    if (ours && answer.configured != session_)
      give_way(answer.granted ? str("session ", answer.configured) : answer.holder);
    if (answer.granted) {
      if (!answer.holder.empty()) log_warning(member->name, ": taken over from ", answer.holder);
      co_return;
    }
    if (parts_.clock.now() >= patience)
      throw FailedPreconditionError(held(member->name, member->address, answer.holder));
    if (!told)
      log_info(held(member->name, member->address, answer.holder), "; waiting ",
               fixed(std::chrono::duration<double>(2 * silence).count(), 1), " s for it to end");
    co_await parts_.reactor.sleep(kAskAgain);
  }
}
template rpc::Task<void> Engine::join<PsControlClient, Engine::Ps>(PsControlClient*, Ps*,
                                                                   std::uint64_t);
template rpc::Task<void> Engine::join<WorkerControlClient, Engine::Worker>(WorkerControlClient*,
                                                                           Worker*, std::uint64_t);

// While others are still dialled or given their tables, those that have been joined are told that
// we live.
rpc::Task<void> Engine::show_life() {
  const auto ping = [this](auto& member) {
    if (member->control)
      tasks_.spawn("a ping", member->control->ping().catch_([](kj::Exception&&) {}));
  };
  while (!started_) {
    for (auto& ps : ps_) ping(ps);
    for (auto& worker : workers_) ping(worker);
    co_await parts_.reactor.sleep(options_.heartbeat_interval);
  }
}

// What was here is gone: the program is told, instead of waiting for tasks that work for another.
void Engine::give_way(const std::string& other) {
  const std::string text = str("another coordinator has taken over this cluster: ", other,
                               ". What this one trained since its last checkpoint is gone");
  queue_->fail_all(std::make_exception_ptr(FailedPreconditionError(text)));
  throw FailedPreconditionError(text);
}

}  // namespace cairn
