// Order of construction: check everything, lock the folder, write the token, reserve ports, plan
// the roles. Nothing is started before all of that has worked, and whatever throws leaves no
// process behind.
#include "tools/launch/local_cluster.h"

#include <unistd.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/memory_limit.h"
#include "core/disk/disk.h"
#include "core/kernels/chosen_devices.h"
#include "tools/launch/run_folder.h"
#include "tools/launch/run_place.h"

namespace cairn::tools {
namespace {

// The bounds of job_limits.cc once more, for `cairn up`, which has no job.
void verify(const LocalClusterOptions& options) {
  auto need = [](int count, int least, const char* what) {
    if (count < least || count > 512)
      throw InvalidArgumentError(str(what, " is ", count, ": wanted ", least, " to 512"));
  };
  need(options.ps, 1, "--ps");
  need(options.workers, 1, "--workers");
  need(options.shards, 0, "--shards");
  need(options.lanes, 0, "--lanes");
  need(options.data_workers, 0, "--data-workers");
  try {
    verify_device_choice(options.device);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("--device: ", error.what()));
  }
  try {
    parse_memory_limit(options.memory_limit);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("--memory-limit: ", error.what()));
  }
  const std::string& transport = options.transport;
  if (transport != "auto" && transport != "tcp" && transport != "unix")
    throw InvalidArgumentError(str("--transport ", transport, ": expected auto, tcp or unix"));
  verify_kills(options.supervisor.kills, options.ps, options.workers, options.data_workers);
}

std::string state_name(const RoleState& state) {
  if (state.given_up) return "given up";
  return state.pid > 0 ? "running" : "down";
}

}  // namespace

// Looked for now, so that the message says how to build the program, instead of a role that dies
// six times.
void need_program(const std::string& path) {
  if (::access(path.c_str(), X_OK) != 0)
    throw NotFoundError(
        str("no program ", path,
            ": build it (cmake --build build/dev --target cairn-ps cairn-worker cairn-data)"));
}

std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

LocalCluster::LocalCluster(LocalClusterOptions options,
                           std::function<void(const RoleEvent&)> on_event)
    : options_(std::move(options)),
      cluster_id_(random_hex(8)),
      chief_pid_(::getpid()),
      on_event_(std::move(on_event)) {
  verify(options_);
  if (!options_.warn) options_.warn = [](const std::string& text) { log_warning(text); };
  if (options_.programs.empty()) options_.programs = program_folder();
  need_program(options_.programs + "/cairn-ps");
  need_program(options_.programs + "/cairn-worker");
  if (options_.data_workers > 0) need_program(options_.programs + "/cairn-data");
  if (options_.token.empty()) options_.token = random_hex(16);
  if (options_.dir.empty()) options_.dir = new_run_folder();
  options_.dir = std::filesystem::absolute(options_.dir).lexically_normal().string();
  system_disk().make_folder(options_.dir + "/logs");
  lock_ = std::make_unique<RunLock>(options_.dir);
  write_token(token_file(), options_.token);

  chief_ = reserve_addresses(ports_, 1);
  ps_ = reserve_addresses(ports_, options_.ps);
  workers_ = reserve_addresses(ports_, options_.workers);
  data_ = reserve_data_roles(ports_, options_.data_workers);
  std::vector<RoleSpec> roles = data_.specs(facts());
  for (int i = 0; i < options_.ps; ++i) roles.push_back(spec("ps", i));
  for (int i = 0; i < options_.workers; ++i) roles.push_back(spec("worker", i));
  supervisor_ = std::make_unique<Supervisor>(std::move(roles), options_.supervisor,
                                             [this](const RoleEvent& event) { tell(event); });
}

// The description first: when the caller hears of an event, cluster.json already shows it.
void LocalCluster::tell(const RoleEvent& event) {
  try_to_write_description();
  if (on_event_) on_event_(event);
}

// A full disk leaves the description stale until the next change. That is no reason to end a run
// that goes on, or that has ended well.
void LocalCluster::try_to_write_description() {
  try {
    write_description();
    warned_ = false;
  } catch (const Error& error) {
    if (warned_.exchange(true)) return;
    options_.warn(str(options_.dir,
                      "/cluster.json is out of date, and `cairn status` with it: ", error.what()));
  }
}

LocalCluster::~LocalCluster() { stop(); }

// The run is there before its first process is: an event of the supervisor writes the description
// too, and whoever asked in between would be told that a run had ended which was just beginning. If
// start() throws, nothing runs, and the description says so.
void LocalCluster::start() {
  set_running(true);
  try {
    supervisor_->start();
    write_description();
  } catch (...) {
    stop();
    throw;
  }
}

bool LocalCluster::set_running(bool running) {
  std::lock_guard hold(mutex_);
  return std::exchange(running_, running);
}

// The description is written once, by the caller that really stopped something; the destructor
// calls this again.
void LocalCluster::stop() {
  supervisor_->stop();
  if (set_running(false)) try_to_write_description();
}

void LocalCluster::set_chief(pid_t pid) {
  {
    std::lock_guard hold(mutex_);
    chief_pid_ = pid;
  }
  write_description();
}

const std::string& LocalCluster::address(const std::string& role, int index) const {
  if (is_data_role(role)) return data_.addresses(role).at(static_cast<std::size_t>(index));
  const auto& all = role == "ps" ? ps_ : role == "worker" ? workers_ : chief_;
  return all.at(static_cast<std::size_t>(index));
}

RunFacts LocalCluster::facts() const {
  return {options_.programs, options_.dir, cluster_id_, token_file(), options_.transport};
}

std::string LocalCluster::log_file(const std::string& role, int index) const {
  return tools::log_file(facts(), role, index);
}

// TensorFlow's form of TF_CONFIG, so that a program reads the same variable under both systems.
std::string LocalCluster::tf_config(const std::string& role, int index) const {
  Json config{{"cluster", {{"chief", chief_}, {"ps", ps_}, {"worker", workers_}}},
              {"task", {{"type", role}, {"index", index}}}};
  return json_text(config);
}

std::vector<std::string> LocalCluster::environment(const std::string& role, int index) const {
  std::vector<std::string> all{
      "TF_CONFIG=" + tf_config(role, index), "CAIRN_CLUSTER_ID=" + cluster_id_,
      "CAIRN_TOKEN_FILE=" + token_file(), "CAIRN_TRANSPORT=" + options_.transport,
      "CAIRN_RUN_DIR=" + options_.dir};
  for (std::string& one : data_.environment()) all.push_back(std::move(one));
  return all;
}

// Everything is on the command line except the token, which any user could read there: that one is
// in a file.
RoleSpec LocalCluster::spec(const std::string& role, int index) const {
  const bool ps = role == "ps";
  std::string log = log_file(role, index);
  Command command{
      .arguments = {options_.programs + (ps ? "/cairn-ps" : "/cairn-worker"), "--listen",
                    address(role, index), "--index", std::to_string(index), "--cluster-id",
                    cluster_id_, "--token-file", token_file(), "--log-file", log, "--transport",
                    options_.transport, "--parent-pid", std::to_string(::getpid())},
      .environment = environment(role, index),
      .output_file = log};
  auto& arguments = command.arguments;
  const int count = ps ? options_.shards : options_.lanes;
  const int servers = options_.ps + options_.workers + options_.data_workers;
  arguments.push_back(count == 0 ? "--host-tasks" : ps ? "--shards" : "--lanes");
  arguments.push_back(std::to_string(count == 0 ? servers : count));
  if (!ps && options_.device != "auto") {
    arguments.push_back("--device");
    arguments.push_back(options_.device);
  }
  if (!ps && options_.deterministic) arguments.push_back("--deterministic");
  if (ps && options_.memory_limit != "none") {
    const std::string row_log =
        options_.row_log.empty() ? options_.dir + "/row-log" : options_.row_log;
    arguments.insert(arguments.end(),
                     {"--memory-limit", options_.memory_limit, "--row-log", row_log});
  }
  const auto& added = ps ? options_.ps_arguments : options_.worker_arguments;
  arguments.insert(arguments.end(), added.begin(), added.end());
  return {.role = role, .index = index, .command = std::move(command)};
}

// Under the mutex from the snapshot to the write, so that an older description never replaces a
// newer one.
void LocalCluster::write_description() {
  std::lock_guard hold(mutex_);
  Json tasks =
      Json::array({{{"role", "chief"}, {"index", 0}, {"address", chief_[0]}, {"pid", chief_pid_}}});
  for (const auto& state : supervisor_->roles())
    tasks.push_back({{"role", state.role},
                     {"index", state.index},
                     {"address", address(state.role, state.index)},
                     {"pid", state.pid},
                     {"state", state_name(state)},
                     {"restarts", state.restarts},
                     {"log", log_file(state.role, state.index)}});
  Json description{{"format", 1},
                   {"cluster_id", cluster_id_},
                   {"transport", options_.transport},
                   {"token_file", token_file()},
                   {"supervisor_pid", ::getpid()},
                   {"running", running_},
                   {"written", time_stamp("%Y-%m-%dT%H:%M:%SZ")},
                   {"tasks", tasks}};
  system_disk().write_atomically(options_.dir + "/cluster.json", json_text(description, 2) + "\n");
}

}  // namespace cairn::tools
