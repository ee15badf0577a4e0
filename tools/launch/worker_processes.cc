// A Supervisor keeps the group and its data service running; the main thread passes signals on to
// it, and keeps cluster.json true.
#include "tools/launch/worker_processes.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <future>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/look_up.h"
#include "core/disk/disk.h"
#include "tools/launch/data_roles.h"
#include "tools/launch/local_cluster.h"
#include "tools/launch/run_folder.h"
#include "tools/launch/run_place.h"
#include "tools/launch/supervisor.h"
#include "tools/launch/typed_signals.h"
#include "tools/launch/wake_up.h"

namespace cairn::tools {
namespace {

constexpr int kLookUpMs = 100;

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

class WorkerProcesses::Group {
 public:
  explicit Group(WorkerProcessesOptions options);

  const std::string& dir() const { return options_.dir; }
  int run();

 private:
  std::vector<RoleSpec> specs() const;
  std::vector<std::string> environment(int index) const;
  RunFacts facts() const {
    return {options_.programs, options_.dir, cluster_id_, options_.dir + "/token",
            options_.transport};
  }
  const std::string& address_of(const RoleState& role) const;
  void on_event(const RoleEvent& event);
  void tell_start(int restarts) const;
  void describe(bool running) const;
  void pass_on_signals();
  bool in_program() const { return options_.interrupted != nullptr; }
  void say(const std::string& text) const {
    if (options_.say) return options_.say(text);
    std::fprintf(stderr, "%s: %s\n", options_.speaker.c_str(), text.c_str());
  }

  std::optional<TypedSignals> signals_;  // blocked before there is any thread
  WorkerProcessesOptions options_;
  const std::string cluster_id_ = random_hex(8);
  std::vector<ReservedPort> ports_;
  std::vector<std::string> addresses_;  // of workers
  DataRoles data_roles_;
  std::unique_ptr<RunLock> lock_;
  bool interrupted_ = false;                // the group has been asked to end, by the program
  const WakeUp changed_;                    // cluster.json is out of date
  std::promise<int> status_;                // of the group, once it has ended for good
  std::unique_ptr<Supervisor> supervisor_;  // last: its thread calls on_event()
};

WorkerProcesses::Group::Group(WorkerProcessesOptions options) : options_(std::move(options)) {
  if (!in_program()) signals_.emplace();
  verify(options_);
  if (options_.token.empty()) options_.token = random_hex(16);
  if (options_.dir.empty()) options_.dir = new_run_folder();
  options_.dir = std::filesystem::absolute(options_.dir).lexically_normal().string();
  system_disk().make_folder(options_.dir + "/logs");
  lock_ = std::make_unique<RunLock>(options_.dir);
  write_token(options_.dir + "/token", options_.token);
  addresses_ = reserve_addresses(ports_, options_.workers);
  if (options_.data_workers > 0) {
    if (options_.programs.empty()) options_.programs = program_folder();
    need_program(options_.programs + "/cairn-data");
    data_roles_ = reserve_data_roles(ports_, options_.data_workers);
  }
  supervisor_ = std::make_unique<Supervisor>(
      specs(),
      SupervisorOptions{
          .kills = options_.kills,
          .group = RoleGroupOptions{.role = "worker", .restarts_max = options_.restarts_max}},
      [this](const RoleEvent& event) { on_event(event); });
}

// On a terminal, the chief shares it and our process group, as a program of a cluster does. Inside
// another program it does not. The data service starts first, so that workers find it.
std::vector<RoleSpec> WorkerProcesses::Group::specs() const {
  std::vector<RoleSpec> roles = data_roles_.specs(facts());
  for (int i = 0; i < options_.workers; ++i) {
    const bool shares = i == 0 && !in_program();
    roles.push_back(
        {.role = "worker",
         .index = i,
         .command = {.arguments = options_.program,
                     .environment = environment(i),
                     .output_file = shares ? "" : log_file(facts(), "worker", i),
                     .group = shares ? Command::Group::kShared : Command::Group::kOwn}});
  }
  return roles;
}

std::vector<std::string> WorkerProcesses::Group::environment(int index) const {
  const Json config{{"cluster", {{"worker", addresses_}}},
                    {"task", {{"type", "worker"}, {"index", index}}}};
  std::vector<std::string> all{"TF_CONFIG=" + json_text(config), "CAIRN_CLUSTER_ID=" + cluster_id_,
                               "CAIRN_TOKEN_FILE=" + options_.dir + "/token",
                               "CAIRN_TRANSPORT=" + options_.transport,
                               "CAIRN_RUN_DIR=" + options_.dir};
  for (std::string& one : data_roles_.environment()) all.push_back(std::move(one));
  return all;
}

// On the supervisor's thread. A data service that is given up leaves the program without data,
// which then says so itself.
void WorkerProcesses::Group::on_event(const RoleEvent& event) {
  const bool of_group = event.role == "worker", started = event.kind == RoleEvent::Kind::kStarted;
  if (started && of_group) {
    if (event.index + 1 == options_.workers) tell_start(event.restarts);  // the last of them
  } else if (!event.message.empty() && (!started || event.restarts > 0)) {
    say(event.message);
  }
  if (event.kind == RoleEvent::Kind::kGroupEnded) status_.set_value(event.status.shell_code());
  changed_.notify();
}

void WorkerProcesses::Group::tell_start(int restarts) const {
  if (restarts > 0) return say(str("all ", options_.workers, " workers are started again"));
  say(str(options_.workers, " workers run; worker 0 is the chief, ",
          in_program() ? "all" : "the others", " write to ", options_.dir, "/logs"));
}

void WorkerProcesses::Group::pass_on_signals() {
  if (!in_program()) {
    while (const auto signal = signals_->next())
      supervisor_->end_group(static_cast<int>(signal->ssi_signo), signal->ssi_code == SI_KERNEL);
    return;
  }
  look_up();
  const int signal = *options_.interrupted;
  if (signal != 0 && !std::exchange(interrupted_, true)) supervisor_->end_group(signal, false);
}

int WorkerProcesses::Group::run() {
  describe(true);  // a worker may ask for the group's status as soon as it runs
  supervisor_->start();
  std::future<int> status = status_.get_future();
  while (status.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    pollfd waits[] = {{.fd = changed_.descriptor(), .events = POLLIN},
                      {.fd = signals_ ? signals_->fd() : -1, .events = POLLIN}};
    ::poll(waits, 2, in_program() ? kLookUpMs : -1);
    if (changed_.take()) describe(true);
    pass_on_signals();
  }
  describe(false);
  return status.get();
}

const std::string& WorkerProcesses::Group::address_of(const RoleState& role) const {
  const auto& all = is_data_role(role.role) ? data_roles_.addresses(role.role) : addresses_;
  return all[static_cast<std::size_t>(role.index)];
}

// As a LocalCluster's, with the kind by which `cairn status` knows that there is no coordinator.
void WorkerProcesses::Group::describe(bool running) const {
  std::vector<RoleState> roles = supervisor_->roles();
  std::stable_partition(roles.begin(), roles.end(),
                        [](const RoleState& role) { return role.role == "worker"; });
  Json tasks = Json::array();
  for (const RoleState& role : roles)
    tasks.push_back({{"role", role.role},
                     {"index", role.index},
                     {"address", address_of(role)},
                     {"pid", role.pid},
                     {"restarts", role.restarts},
                     {"log", role.role == "worker" && role.index == 0
                                 ? ""
                                 : log_file(facts(), role.role, role.index)}});
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
