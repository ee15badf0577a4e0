// Supervisor: keeps the processes of a run on this machine running, brings back those that die, and
// ends them all when we end. A role comes back by itself; roles of a group come back together.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "tools/launch/child_process.h"
#include "tools/launch/kill_plan.h"
#include "tools/launch/role_group.h"
#include "tools/launch/wake_up.h"

namespace cairn::tools {

// A process that is to be kept running.
struct RoleSpec {
  std::string role;  // "ps", "worker"
  int index = 0;
  Command command;  // with a log file of its own as its output
};

struct SupervisorOptions {
  // A role that dies within `healthy` of its start has died young. It is first brought back at
  // once; from the second young death in a row on it waits first_backoff, and twice as long each
  // time; after crashes_max returns in vain it is given up. One that dies young with exit status 2,
  // as our programs do when their command line is wrong, is given up at once.
  Duration healthy = std::chrono::seconds(10);
  Duration first_backoff = std::chrono::milliseconds(100);
  Duration backoff_max = std::chrono::seconds(5);
  int crashes_max = 5;
  Duration grace = std::chrono::seconds(10);  // from SIGTERM to SIGKILL when all are ended
  std::vector<Kill> kills;                    // each is done once, when it is due and its role runs
  // Roles that live and die together (role_group.h), to which none of the above but `healthy`
  // applies. Each start has CAIRN_RESTARTS, how often the group was started again, in its
  // environment. Empty: every role is on its own.
  std::optional<RoleGroupOptions> group = std::nullopt;
};

// Something that happened to a role, for logs and for the progress line.
struct RoleEvent {
  // kGroupEnded: of no role; all of the group have ended for good, and `status` is the group's.
  enum class Kind { kStarted, kDied, kGivenUp, kGroupEnded } kind = Kind::kStarted;
  std::string role;
  int index = 0;
  pid_t pid = -1;
  int restarts = 0;      // so far; 0 in the event of the first start
  ExitStatus status;     // kDied, kGivenUp, kGroupEnded
  bool by_plan = false;  // kDied: kill() or a --kill did it
  // One line for people; kGivenUp: also the last lines of its log. Empty: nothing to tell.
  std::string message;
};

// A role as it is now.
struct RoleState {
  std::string role;
  int index = 0;
  pid_t pid = -1;  // -1 while it does not run
  int restarts = 0;
  bool given_up = false;
};

// All children are started and watched by one thread of its own, so that they die with it
// (PR_SET_PDEATHSIG) while a job runs in the same process. The thread sleeps in poll() until a
// child ends, a call arrives, or a deadline comes.
//   Callback  on that thread, one at a time; it must not throw, nor call stop().
//   Thread  any, for every member.
class Supervisor {
 public:
  Supervisor(std::vector<RoleSpec> roles, SupervisorOptions options,
             std::function<void(const RoleEvent&)> on_event = {});
  ~Supervisor();  // stop()

  // Starts every role, and returns once all are running.
  //   Errors  those of ChildProcess; then none is left running.
  void start();
  // Sends SIGKILL, as a fault to recover from: the role returns as after any death, without
  // backoff. Does nothing if it does not run.
  //   Errors  NotFound: there is no such role.
  void kill(const std::string& role, int index);
  // Call it with the part of the run that is done, 0 to 1: kills at a percentage wait for it. Cheap
  // enough for every step: an atomic store and a load, unless a kill is due.
  void progress(double done);
  // Asks the group to end: every one of it gets the signal, but for those that have it from our
  // terminal already, where it was `typed`. The third request sends SIGKILL.
  void end_group(int signal, bool typed);
  // Sends SIGTERM to all, and SIGKILL after the grace period; returns when none is left. Repeating
  // it does nothing.
  void stop();

  // As last published by the thread, which does so at every change.
  std::vector<RoleState> roles() const;         // a snapshot, in the order of the specs
  int restarts(const std::string& role) const;  // of all its indices

 private:
  struct Role;
  struct Request {
    int signal = 0;
    bool typed = false;
  };

  // The thread's own functions: run() is the whole of it, turn() one pass through those below.
  void run(std::promise<void> started);
  bool turn();  // one pass; false when all is over
  void sleep(TimePoint now);
  void collect_dead(TimePoint now);
  void do_kills(TimePoint now);
  void start_due(TimePoint now);
  void end_all(TimePoint now);
  void start_role(Role& role);
  void on_death(Role& role, const ExitStatus& status, TimePoint now);
  void give_up(Role& role, RoleEvent event);
  void on_group_death(Role& role, RoleEvent event, TimePoint now);
  void pass_on_requests(TimePoint now);
  void settle_group(TimePoint now);
  void start_group_again(TimePoint now);
  bool in_group(const Role& role) const;
  bool may_be_killed(const Role& role) const;
  // Empties what other threads have put down for this one.
  template <typename Asked>
  std::vector<Asked> taken(std::vector<Asked>& asked) {
    std::lock_guard hold(mutex_);
    return std::exchange(asked, {});
  }
  void publish();
  std::optional<TimePoint> next_deadline() const;

  // State that other threads touch: atomics, and the vectors under mutex_.
  const SupervisorOptions options_;
  const std::function<void(const RoleEvent&)> on_event_;
  const WakeUp wake_;
  std::thread thread_;
  std::atomic<double> progress_{0}, next_progress_{2};
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;  // guards the next three
  std::vector<std::size_t> wanted_kills_;
  std::vector<Request> requests_;  // to end the group
  std::vector<RoleState> state_;
  std::mutex stop_mutex_;  // guards thread_

  // The thread's own:
  std::vector<Role> roles_;
  KillPlan kills_;
  std::optional<RoleGroup> group_;  // empty: there is none, or it has ended for good
  TimePoint started_{};
  std::optional<TimePoint> killing_at_;  // when SIGTERM gives way to SIGKILL
};

}  // namespace cairn::tools
