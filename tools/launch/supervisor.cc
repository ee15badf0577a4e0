// The supervisor's thread. Everything that it decides is in turn(), one pass per wake-up: collect
// who has died, then either end all, or start who is due and do planned kills. State that other
// threads ask for is published as a snapshot, so the thread's own needs no lock.
#include "tools/launch/supervisor.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/error.h"

namespace cairn::tools {
namespace {
using std::chrono::milliseconds;

// The exit status of our programs when their command line is wrong, which does not mend itself
// (rpc/server/command_line.h has it as kUsageExitCode).
constexpr int kWrongUsage = 2;

TimePoint now() { return system_clock().now(); }

std::string title(const RoleSpec& spec) { return str(spec.role, " ", spec.index); }
}  // namespace

struct Supervisor::Role {
  RoleSpec spec;
  std::optional<ChildProcess> process;
  TimePoint started{};
  std::optional<TimePoint> start_at;  // set while it waits to come back
  int restarts = 0;
  int young_deaths = 0;  // in a row
  bool killed_by_plan = false;
  bool given_up = false;
};

Supervisor::Supervisor(std::vector<RoleSpec> roles, SupervisorOptions options,
                       std::function<void(const RoleEvent&)> on_event)
    : options_(std::move(options)), on_event_(std::move(on_event)), kills_(options_.kills) {
  for (auto& spec : roles) roles_.push_back(Role{.spec = std::move(spec)});
  if (options_.group) {
    const auto size = std::ranges::count(roles_, options_.group->role,
                                         [](const Role& role) { return role.spec.role; });
    group_.emplace(*options_.group, static_cast<int>(size), options_.healthy);
  }
  publish();
}

Supervisor::~Supervisor() { stop(); }

void Supervisor::start() {
  std::promise<void> started;
  auto running = started.get_future();
  {
    std::lock_guard hold(stop_mutex_);
    thread_ =
        std::thread([this, promise = std::move(started)]() mutable { run(std::move(promise)); });
  }
  running.get();
}

// stop_mutex_ lets two threads stop at once: the second waits for the join instead of joining too.
void Supervisor::stop() {
  std::lock_guard hold(stop_mutex_);
  stopping_ = true;
  wake_.notify();
  if (thread_.joinable()) thread_.join();
}

// roles_ keeps its order and its specs for good, so they may be read from any thread; only the rest
// of a Role is the thread's own.
void Supervisor::kill(const std::string& role, int index) {
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i].spec.role != role || roles_[i].spec.index != index) continue;
    std::lock_guard hold(mutex_);
    wanted_kills_.push_back(i);
    wake_.notify();
    return;
  }
  throw NotFoundError(str("no ", role, " ", index, " is supervised here"));
}

// Called for every closure, hence no lock: the thread is woken only when a planned kill has come
// due.
void Supervisor::progress(double done) {
  progress_ = done;
  if (done >= next_progress_) wake_.notify();
}

void Supervisor::end_group(int signal, bool typed) {
  std::lock_guard hold(mutex_);
  requests_.push_back({signal, typed});
  wake_.notify();
}

std::vector<RoleState> Supervisor::roles() const {
  std::lock_guard hold(mutex_);
  return state_;
}

int Supervisor::restarts(const std::string& role) const {
  int total = 0;
  for (const auto& state : roles()) total += state.role == role ? state.restarts : 0;
  return total;
}

// Either all roles start, or none is left running and start() throws: a job on half a cluster would
// wait for the other half.
void Supervisor::run(std::promise<void> started) {
  // Signals of the process are for its main thread: none may interrupt poll() here.
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  started_ = now();
  try {
    if (group_) group_->started(started_);
    for (auto& role : roles_) start_role(role);
  } catch (...) {
    for (auto& role : roles_) role.process.reset();
    publish();
    started.set_exception(std::current_exception());
    return;
  }
  next_progress_ = kills_.next_progress();
  started.set_value();
  while (turn()) {
  }
}

bool Supervisor::turn() {
  sleep(now());
  TimePoint at = now();
  collect_dead(at);
  if (stopping_) {
    end_all(at);
    return std::any_of(roles_.begin(), roles_.end(),
                       [](const Role& role) { return role.process.has_value(); });
  }
  start_due(at);
  if (group_) pass_on_requests(at);
  do_kills(at);
  if (group_) settle_group(at);
  return true;
}

// Rounded up to whole milliseconds, since poll() would otherwise return just before the deadline,
// again and again. At most an hour, so that the number fits.
void Supervisor::sleep(TimePoint at) {
  std::vector<pollfd> waits{{.fd = wake_.descriptor(), .events = POLLIN}};
  for (const auto& role : roles_)
    if (role.process) waits.push_back({.fd = role.process->pidfd(), .events = POLLIN});
  int timeout = -1;
  if (auto deadline = next_deadline()) {
    auto left = std::chrono::ceil<milliseconds>(*deadline - at).count();
    timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
  }
  ::poll(waits.data(), waits.size(), timeout);
  wake_.take();
}

// Kills of the plan wait until their role is back; in a group that breaks up, until it is whole.
bool Supervisor::may_be_killed(const Role& role) const {
  return role.process && !role.killed_by_plan && !(in_group(role) && group_->is_ending());
}

// A kill whose role is down is no deadline: it is looked at again when the role has started.
std::optional<TimePoint> Supervisor::next_deadline() const {
  std::optional<TimePoint> next = killing_at_;
  auto consider = [&](TimePoint at) { next = next ? std::min(*next, at) : at; };
  if (stopping_) return next;
  if (group_ && group_->deadline()) consider(*group_->deadline());
  for (const auto& role : roles_)
    if (role.start_at) consider(*role.start_at);
  for (const auto& role : roles_)
    if (const auto after = kills_.next_after(role.spec.role, role.spec.index);
        after && may_be_killed(role))
      consider(started_ + *after);
  return next;
}

void Supervisor::collect_dead(TimePoint at) {
  for (auto& role : roles_) {
    if (!role.process) continue;
    if (auto status = role.process->poll()) on_death(role, *status, at);
  }
}

// Deaths by plan count as restarts and never towards giving up: they say nothing about the program.
// While everything is being stopped, deaths are expected and raise no event.
void Supervisor::on_death(Role& role, const ExitStatus& status, TimePoint at) {
  RoleEvent event{.kind = RoleEvent::Kind::kDied,
                  .role = role.spec.role,
                  .index = role.spec.index,
                  .pid = role.process->pid(),
                  .restarts = role.restarts,
                  .status = status,
                  .by_plan = std::exchange(role.killed_by_plan, false)};
  role.process.reset();
  if (stopping_) return publish();
  if (in_group(role)) return on_group_death(role, std::move(event), at);
  bool young = at - role.started < options_.healthy;
  if (!event.by_plan) role.young_deaths = young ? role.young_deaths + 1 : 0;
  const bool wrong_usage = young && !event.by_plan && status.shell_code() == kWrongUsage;
  if (wrong_usage || role.young_deaths > options_.crashes_max)
    return give_up(role, std::move(event));
  Duration wait{0};
  if (!event.by_plan && role.young_deaths > 1)
    wait =
        std::min<Duration>(options_.backoff_max,
                           options_.first_backoff * (1LL << std::min(role.young_deaths - 2, 20)));
  role.start_at = at + wait;
  event.message = str(title(role.spec), " (process ", event.pid, ") ended: ", status.str(),
                      event.by_plan ? ", as asked" : "", "; it is started again",
                      wait.count() > 0 ? str(" in ", wait.count() / 1'000'000, " ms") : "");
  publish();
  if (on_event_) on_event_(event);
}

// The message holds the end of the role's log, because that is where the reason stands, and a user
// of `cairn train` may not know that there are logs.
void Supervisor::give_up(Role& role, RoleEvent event) {
  role.given_up = true;
  event.kind = RoleEvent::Kind::kGivenUp;
  const std::string& log = role.spec.command.output_file;
  const std::string deaths =
      role.young_deaths == 1 ? "once" : str(role.young_deaths, " times in a row");
  event.message =
      str(title(role.spec), " cannot be kept running: it ended ", deaths, " within ",
          std::chrono::duration<double>(options_.healthy).count(), " s of its start, last with ",
          event.status.str(), ". The end of its log ", log, ":\n", last_lines(log, 10));
  publish();
  if (on_event_) on_event_(event);
}

// ---- the group ----

bool Supervisor::in_group(const Role& role) const { return group_ && group_->has(role.spec.role); }

// One that ends well, or that was asked to, is no news.
void Supervisor::on_group_death(Role& role, RoleEvent event, TimePoint at) {
  group_->ended(role.spec.index, event.status, at);
  if (event.status.shell_code() != 0 && !group_->is_asked_to_end()) {
    const std::string& log = role.spec.command.output_file;
    event.message = str(title(role.spec), " (process ", event.pid, ") ended: ", event.status.str(),
                        log.empty() ? "" : "; its log is " + log);
  }
  publish();
  if (on_event_) on_event_(event);
}

// If a request was typed, it has already reached the roles that share our terminal.
void Supervisor::pass_on_requests(TimePoint at) {
  for (const Request& request : taken(requests_)) {
    const bool kill = group_->asked_to_end(at) >= 3;
    for (const Role& role : roles_) {
      if (!in_group(role) || !role.process) continue;
      const bool shared = role.spec.command.group == Command::Group::kShared;
      if (kill || !(request.typed && shared)) role.process->send(kill ? SIGKILL : request.signal);
    }
  }
}

// If it is time for that, ends the roles that still run. Once none runs, starts all again or
// reports the group's end.
void Supervisor::settle_group(TimePoint at) {
  const std::optional<int> signal = group_->due_signal(at);
  bool any = false;
  for (Role& role : roles_) {
    if (!in_group(role) || !role.process) continue;
    any = true;
    if (signal) role.process->send(*signal);
  }
  if (any) return;
  RoleGroup::Outcome outcome = group_->outcome();
  if (outcome.again) {
    try {
      return start_group_again(at);
    } catch (const Error& error) {
      outcome = {.status = {.code = 1}, .text = error.what()};
      for (Role& role : roles_)
        if (in_group(role)) role.process.reset();
    }
  }
  group_.reset();
  publish();
  if (on_event_)
    on_event_({.kind = RoleEvent::Kind::kGroupEnded,
               .status = outcome.status,
               .message = std::move(outcome.text)});
}

void Supervisor::start_group_again(TimePoint at) {
  group_->started(at);
  for (Role& role : roles_) {
    if (!in_group(role)) continue;
    role.restarts = group_->restarts();
    role.killed_by_plan = false;
    start_role(role);
  }
}

// ---- starts and kills ----

// Counted before it is tried, so that a failed start is a restart too.
void Supervisor::start_due(TimePoint at) {
  for (auto& role : roles_) {
    if (!role.start_at || *role.start_at > at) continue;
    role.start_at.reset();
    ++role.restarts;
    try {
      start_role(role);
    } catch (const Error& error) {
      // The program was replaced or removed meanwhile, or the system has no process left. Either
      // may pass, so it is tried again, as often as after a death.
      ++role.young_deaths;
      role.given_up = role.young_deaths > options_.crashes_max;
      if (!role.given_up) role.start_at = at + options_.backoff_max;
      publish();
      if (on_event_ && role.given_up)
        on_event_({.kind = RoleEvent::Kind::kGivenUp,
                   .role = role.spec.role,
                   .index = role.spec.index,
                   .restarts = role.restarts,
                   .status = {.code = 127},
                   .message = str(title(role.spec), " cannot be kept running: ", error.what())});
    }
  }
}

void Supervisor::start_role(Role& role) {
  Command command = role.spec.command;
  if (in_group(role)) command.environment.push_back(str("CAIRN_RESTARTS=", group_->restarts()));
  role.process.emplace(command);
  role.started = now();
  publish();
  if (!on_event_) return;
  pid_t pid = role.process->pid();
  on_event_({.kind = RoleEvent::Kind::kStarted,
             .role = role.spec.role,
             .index = role.spec.index,
             .pid = pid,
             .restarts = role.restarts,
             .message = str(title(role.spec), " runs as process ", pid)});
}

// One kill per role and pass. It is erased from the plan when it is done, and next_progress_ is
// computed anew, which is what progress() compares with.
void Supervisor::do_kills(TimePoint at) {
  const std::vector<std::size_t> wanted = taken(wanted_kills_);
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    Role& role = roles_[i];
    if (!may_be_killed(role)) continue;
    const bool due = kills_.take_due(role.spec.role, role.spec.index, at - started_, progress_);
    if (!due && std::ranges::count(wanted, i) == 0) continue;
    role.killed_by_plan = true;
    if (in_group(role)) group_->planned();
    role.process->send(SIGKILL);
  }
  next_progress_ = kills_.next_progress();
}

// Called once per pass until no process is left: SIGTERM to all in the first, SIGKILL when the
// grace period is over.
void Supervisor::end_all(TimePoint at) {
  bool first = !killing_at_;
  if (first) killing_at_ = at + options_.grace;
  bool late = !first && at >= *killing_at_;
  // A killed process may stay in the kernel for a while, as on a dead network file system. Looking
  // again each second is enough.
  if (late) killing_at_ = at + std::chrono::seconds(1);
  for (auto& role : roles_) {
    if (!role.process || !(first || late)) continue;
    role.process->send(late ? SIGKILL : SIGTERM);
    // A stopped process would see SIGTERM only when it continues.
    if (first) role.process->send(SIGCONT);
  }
}

// Built outside of the lock: roles_ is this thread's alone.
void Supervisor::publish() {
  std::vector<RoleState> state;
  for (const auto& role : roles_)
    state.push_back({role.spec.role, role.spec.index, role.process ? role.process->pid() : -1,
                     role.restarts, role.given_up});
  std::lock_guard hold(mutex_);
  state_ = std::move(state);
}

}  // namespace cairn::tools
