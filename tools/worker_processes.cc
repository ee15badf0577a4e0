// One loop on one thread: it sleeps on the members' pidfds, on a signalfd and until the next
// deadline.
#include "tools/worker_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/disk/disk.h"
#include "tools/child_process.h"
#include "tools/data_roles.h"
#include "tools/local_cluster.h"
#include "tools/run_folder.h"
#include "tools/run_place.h"
#include "tools/typed_signals.h"

namespace cairn::tools {
namespace {

using std::chrono::milliseconds;

constexpr Duration kYoung = std::chrono::seconds(10);
constexpr int kYoungEndsMax = 3;  // in a row
// How long workers may take to notice that one is gone, which is a second, and to end.
constexpr Duration kPatience = std::chrono::seconds(15);

TimePoint time_now() { return system_clock().now(); }

// An eventfd, which wakes a poll() from another thread.
class WakeUp {
 public:
  WakeUp() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ < 0) throw ResourceExhaustedError("this process may open no more files");
  }
  ~WakeUp() { ::close(descriptor_); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  int descriptor() const { return descriptor_; }
  void notify() const { ::eventfd_write(descriptor_, 1); }
  // Whether it was notified since it was last asked.
  bool take() const {
    eventfd_t times = 0;
    return ::eventfd_read(descriptor_, &times) == 0;
  }

 private:
  const int descriptor_;
};

void verify(const WorkerProcessesOptions& options) {
  if (options.workers < 1 || options.workers > 512)
    throw InvalidArgumentError(str("--workers is ", options.workers, ": wanted 1 to 512"));
  const std::string& transport = options.transport;
  if (transport != "auto" && transport != "tcp" && transport != "unix")
    throw InvalidArgumentError(str("--transport ", transport, ": expected auto, tcp or unix"));
  if (options.data_workers < 0 || options.data_workers > 512)
    throw InvalidArgumentError(
        str("--data-workers is ", options.data_workers, ": wanted 0 to 512"));
  verify_kills(options.kills, 0, options.workers, options.data_workers);
  for (const Kill& kill : options.kills)
    if (kill.progress)
      throw InvalidArgumentError(str("--kill ", kill.str(),
                                     ": how much of a run is done is known where there are ps "
                                     "only; of a group of workers give a time, as worker:",
                                     kill.index, "@12s"));
}

}  // namespace

struct WorkerProcesses::Member {
  std::optional<ChildProcess> process;
  std::optional<ExitStatus> ended;
};

class WorkerProcesses::Group {
 public:
  explicit Group(WorkerProcessesOptions options);

  const std::string& dir() const { return options_.dir; }
  int run();

 private:
  void start();
  int wait_for_all();  // the worker whose end was the cause; -1: all ended well
  void look(int& cause);
  void do_kills();
  void pass_on_signals();
  void send_all(int signal);
  bool any_runs() const;
  std::optional<TimePoint> next_deadline() const;
  bool may_start_again(int cause);
  std::vector<std::string> environment(int index) const;
  RunFacts facts() const {
    return {options_.programs, options_.dir, cluster_id_, options_.dir + "/token",
            options_.transport};
  }
  void plan_data_service();
  void on_data_event(const RoleEvent& event) const;
  void describe_data_service(Json& tasks) const;
  std::string log_file(int index) const {
    return str(options_.dir, "/logs/worker-", index, ".log");
  }
  void describe(bool running) const;
  void say(const std::string& text) const {
    std::fprintf(stderr, "%s: %s\n", options_.speaker.c_str(), text.c_str());
  }

  const TypedSignals signals_;  // blocked before there is any thread
  WorkerProcessesOptions options_;
  const std::string cluster_id_ = random_hex(8);
  std::vector<ReservedPort> ports_;
  std::vector<std::string> addresses_;
  std::unique_ptr<RunLock> lock_;
  std::vector<Member> members_;
  DataRoles data_roles_;
  const WakeUp data_changed_;        // cluster.json is out of date
  TimePoint began_{}, started_{};    // the first start, and the newest
  TimePoint broke_{};                // when the first worker ended with an error
  std::optional<TimePoint> ending_;  // when those that still run are told to end, and then killed
  bool told_to_end_ = false;
  bool planned_ = false;  // this time a kill of the plan was the cause
  int restarts_ = 0, counted_ = 0, young_ends_ = 0, requests_ = 0;
  std::unique_ptr<Supervisor> data_;  // last: its thread tells of changes
};

WorkerProcesses::Group::Group(WorkerProcessesOptions options) : options_(std::move(options)) {
  verify(options_);
  if (options_.token.empty()) options_.token = random_hex(16);
  if (options_.dir.empty()) options_.dir = new_run_folder();
  options_.dir = std::filesystem::absolute(options_.dir).lexically_normal().string();
  system_disk().make_folder(options_.dir + "/logs");
  lock_ = std::make_unique<RunLock>(options_.dir);
  write_token(options_.dir + "/token", options_.token);
  addresses_ = reserve_addresses(ports_, options_.workers);
  members_.resize(static_cast<std::size_t>(options_.workers));
  plan_data_service();
}

// Its kills are the supervisor's; ours are those of workers.
void WorkerProcesses::Group::plan_data_service() {
  if (options_.data_workers == 0) return;
  if (options_.programs.empty()) options_.programs = program_folder();
  need_program(options_.programs + "/cairn-data");
  data_roles_ = reserve_data_roles(ports_, options_.data_workers);
  SupervisorOptions supervised;
  const auto is_of_data = [](const Kill& kill) { return is_data_role(kill.role); };
  std::ranges::copy_if(options_.kills, std::back_inserter(supervised.kills), is_of_data);
  std::erase_if(options_.kills, is_of_data);
  data_ = std::make_unique<Supervisor>(data_roles_.specs(facts()), std::move(supervised),
                                       [this](const RoleEvent& event) { on_data_event(event); });
}

// On the supervisor's thread. A data service that is given up leaves the program without data,
// which then says so itself.
void WorkerProcesses::Group::on_data_event(const RoleEvent& event) const {
  if (event.kind != RoleEvent::Kind::kStarted || event.restarts > 0) say(event.message);
  data_changed_.notify();
}

void WorkerProcesses::Group::describe_data_service(Json& tasks) const {
  if (!data_) return;
  for (const RoleState& state : data_->roles())
    tasks.push_back(
        {{"role", state.role},
         {"index", state.index},
         {"address", data_roles_.addresses(state.role)[static_cast<std::size_t>(state.index)]},
         {"pid", state.pid},
         {"restarts", state.restarts},
         {"log", tools::log_file(facts(), state.role, state.index)}});
}

std::vector<std::string> WorkerProcesses::Group::environment(int index) const {
  const Json config{{"cluster", {{"worker", addresses_}}},
                    {"task", {{"type", "worker"}, {"index", index}}}};
  std::vector<std::string> all{"TF_CONFIG=" + json_text(config),
                               "CAIRN_CLUSTER_ID=" + cluster_id_,
                               "CAIRN_TOKEN_FILE=" + options_.dir + "/token",
                               "CAIRN_TRANSPORT=" + options_.transport,
                               "CAIRN_RUN_DIR=" + options_.dir,
                               "CAIRN_RESTARTS=" + std::to_string(restarts_)};
  for (std::string& one : data_roles_.environment()) all.push_back(std::move(one));
  return all;
}

// The chief shares our group and our terminal, as a program of a cluster does; what is typed there
// is passed on to the others.
void WorkerProcesses::Group::start() {
  started_ = time_now();
  ending_.reset();
  told_to_end_ = planned_ = false;
  for (Member& member : members_) {
    member.ended.reset();
    member.process.reset();
  }
  describe(true);  // a worker may ask for the group's status as soon as it runs
  for (int i = 0; i < options_.workers; ++i) {
    Member& member = members_[static_cast<std::size_t>(i)];
    member.process.emplace(
        Command{.arguments = options_.program,
                .environment = environment(i),
                .output_file = i == 0 ? "" : log_file(i),
                .group = i == 0 ? Command::Group::kShared : Command::Group::kOwn});
  }
  describe(true);
}

int WorkerProcesses::Group::run() {
  began_ = time_now();
  if (data_) data_->start();
  for (;;) {
    start();
    if (restarts_ == 0)
      say(str(options_.workers, " workers run; worker 0 is the chief, the others write to ",
              options_.dir, "/logs"));
    const int cause = wait_for_all();
    describe(false);
    if (cause < 0) return 0;
    if (requests_ > 0) return members_[0].ended->shell_code();
    if (!may_start_again(cause))
      return members_[static_cast<std::size_t>(cause)].ended->shell_code();
    ++restarts_;
    say(str("all ", options_.workers, " workers are started again"));
  }
}

// A worker that was killed is the cause, if there is one: the others end with an exit status
// because of it, and which of the ends is seen first is chance.
int WorkerProcesses::Group::wait_for_all() {
  int cause = -1;
  while (any_runs()) {
    std::vector<pollfd> waits{{.fd = signals_.fd(), .events = POLLIN},
                              {.fd = data_changed_.descriptor(), .events = POLLIN}};
    for (const Member& member : members_)
      if (member.process) waits.push_back({.fd = member.process->pidfd(), .events = POLLIN});
    int timeout = -1;
    if (const auto deadline = next_deadline())
      timeout = static_cast<int>(std::clamp<std::int64_t>(
          std::chrono::ceil<milliseconds>(*deadline - time_now()).count(), 0, 3'600'000));
    ::poll(waits.data(), waits.size(), timeout);
    if (data_changed_.take()) describe(true);
    pass_on_signals();
    do_kills();
    look(cause);
    if (ending_ && time_now() >= *ending_) {
      send_all(told_to_end_ ? SIGKILL : SIGTERM);
      told_to_end_ = true;
      ending_ = time_now() + kPatience;
    }
  }
  return cause;
}

void WorkerProcesses::Group::look(int& cause) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (!member.process) continue;
    member.ended = member.process->poll();
    if (!member.ended) continue;
    const pid_t pid = member.process->pid();
    member.process.reset();
    if (member.ended->shell_code() == 0) continue;
    if (requests_ == 0)
      say(str("worker ", i, " (process ", pid, ") ended: ", member.ended->str(),
              i == 0 ? "" : "; its log is " + log_file(static_cast<int>(i))));
    const bool first = cause < 0;
    if (first || (member.ended->signal != 0 && !told_to_end_ &&
                  members_[static_cast<std::size_t>(cause)].ended->signal == 0))
      cause = static_cast<int>(i);
    if (!first) continue;
    broke_ = time_now();
    ending_ = broke_ + kPatience;
  }
}

bool WorkerProcesses::Group::any_runs() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.process.has_value(); });
}

void WorkerProcesses::Group::send_all(int signal) {
  for (const Member& member : members_)
    if (member.process) member.process->send(signal);
}

// What is typed reaches the chief by itself.
void WorkerProcesses::Group::pass_on_signals() {
  while (const auto signal = signals_.next()) {
    if (++requests_ >= 3) {
      send_all(SIGKILL);
      continue;
    }
    const bool typed = signal->ssi_code == SI_KERNEL;
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (members_[i].process && !(typed && i == 0))
        members_[i].process->send(static_cast<int>(signal->ssi_signo));
    if (!ending_)
      ending_ = time_now() + std::chrono::minutes(10);  // a checkpoint may take its time
  }
}

// One whose worker does not run waits until it does.
void WorkerProcesses::Group::do_kills() {
  for (auto kill = options_.kills.begin(); kill != options_.kills.end();) {
    Member& member = members_[static_cast<std::size_t>(kill->index)];
    if (!member.process || ending_ || !kill->due(time_now() - began_, 0)) {
      ++kill;
      continue;
    }
    planned_ = true;
    member.process->send(SIGKILL);
    kill = options_.kills.erase(kill);
  }
}

std::optional<TimePoint> WorkerProcesses::Group::next_deadline() const {
  if (ending_) return ending_;
  std::optional<TimePoint> next;
  for (const Kill& kill : options_.kills)
    if (members_[static_cast<std::size_t>(kill.index)].process)
      next = std::min(next.value_or(began_ + *kill.after), began_ + *kill.after);
  return next;
}

bool WorkerProcesses::Group::may_start_again(int cause) {
  if (planned_) return true;
  const ExitStatus& status = *members_[static_cast<std::size_t>(cause)].ended;
  const bool young = broke_ - started_ < kYoung;
  young_ends_ = young ? young_ends_ + 1 : 0;
  const std::string who = str("worker ", cause, " ended with ", status.str());
  if (young && status.signal == 0) {
    say(str(who, " soon after its start, so that it would again: the group has ended"));
    return false;
  }
  if (young_ends_ >= kYoungEndsMax || counted_ >= options_.restarts_max) {
    say(str(who, ", and the group was started again ", counted_,
            " times: it has ended; mend the cause, and start it again"));
    return false;
  }
  ++counted_;
  return true;
}

// As a LocalCluster's, with the kind by which `cairn status` knows that there is no coordinator.
void WorkerProcesses::Group::describe(bool running) const {
  Json tasks = Json::array();
  for (int i = 0; i < options_.workers; ++i) {
    const Member& member = members_[static_cast<std::size_t>(i)];
    tasks.push_back({{"role", "worker"},
                     {"index", i},
                     {"address", addresses_[static_cast<std::size_t>(i)]},
                     {"pid", member.process ? member.process->pid() : -1},
                     {"restarts", restarts_},
                     {"log", i == 0 ? "" : log_file(i)}});
  }
  describe_data_service(tasks);
  const Json description{{"format", 1},
                         {"kind", "workers"},
                         {"cluster_id", cluster_id_},
                         {"transport", options_.transport},
                         {"token_file", options_.dir + "/token"},
                         {"supervisor_pid", ::getpid()},
                         {"running", running},
                         {"written", time_stamp("%Y-%m-%dT%H:%M:%SZ")},
                         {"tasks", tasks}};
  try {
    system_disk().write_atomically(options_.dir + "/cluster.json",
                                   json_text(description, 2) + "\n");
  } catch (const Error& error) {
    say(str(options_.dir,
            "/cluster.json is out of date, and `cairn status` with it: ", error.what()));
  }
}

WorkerProcesses::WorkerProcesses(WorkerProcessesOptions options)
    : group_(std::make_unique<Group>(std::move(options))) {}
WorkerProcesses::~WorkerProcesses() = default;
const std::string& WorkerProcesses::dir() const { return group_->dir(); }
int WorkerProcesses::run() { return group_->run(); }

}  // namespace cairn::tools
