// Prints the coordinator's answer (docs/running.md) as text. Every field is read with a default,
// because the coordinator may be of another release than this command.
#include "tools/cli/status_command.h"

#include <CLI/CLI.hpp>
#include <cstring>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tools/cli/run_address.h"
#include "tools/job/run/latest_progress.h"
#include "tools/launch/gpu_figures.h"
#include "tools/launch/kill_plan.h"
#include "tools/launch/memory_text.h"

namespace cairn::tools {
namespace {

struct StatusRequest {
  RunChoice run;
  bool as_json = false;
};

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

// The coordinator does not know log files; the run's folder does.
std::string log_of(const Json& description, const std::string& task) {
  for (const auto& entry : description.value("tasks", Json::array())) {
    std::string name =
        "/job:" + entry.value("role", "") + "/task:" + std::to_string(entry.value("index", 0));
    if (name == task) return entry.value("log", "");
  }
  return "";
}

// " 4 lanes (16 processors for 4 tasks of this host)"; empty if the task's answer has neither.
std::string threads_of(const Json& own) {
  for (const char* what : {"shards", "lanes"}) {
    if (!own.is_object() || !own.contains(what)) continue;
    const std::string why = own.value(str(what, "_why"), "");
    const std::size_t count = own[what].size();
    const std::string name(what, std::strlen(what) - (count == 1 ? 1 : 0));
    return str(" ", count, " ", name, why.empty() ? "" : " (" + why + ")", " ");
  }
  return "";
}

// " 4 of 4 backups in sync"; empty without replicas.
std::string backups_of(const Json& task) {
  const long long backups = task.value("backups", 0ll);
  if (backups == 0) return "";
  return str(" ", task.value("in_sync", 0ll), " of ", backups, " backups in sync");
}

// One line per task, and a second one if it is in trouble. A ps or worker that is away has no
// details.
void print_task(const Json& task, const Json& description) {
  std::string name = task.value("task", "");
  std::printf("  %-18s %-22s %-6s", name.c_str(), task.value("address", "").c_str(),
              task.value("ready", false) ? "up" : "AWAY");
  if (task.contains("inflight")) std::printf(" closures %s", json_text(task["inflight"]).c_str());
  const Json own = task.value("details", Json::object());
  std::printf("%s%s%s%s%s", threads_of(own).c_str(), memory_text(own).c_str(),
              save_text(own).c_str(), restore_text(own).c_str(), backups_of(task).c_str());
  if (std::string log = log_of(description, name); !log.empty())
    std::printf("  log %s", log.c_str());
  if (task.contains("trouble")) std::printf("\n    %s", task["trouble"].get<std::string>().c_str());
  std::printf("\n");
}

// As the run's folder has it.
void print_process(const Json& task) {
  const std::string log = task.value("log", "");
  std::printf("  /job:%s/task:%lld %-22s process %lld, started again %lld times%s\n",
              task.value("role", "").c_str(), task.value("index", 0ll),
              task.value("address", "").c_str(), task.value("pid", -1ll),
              task.value("restarts", 0ll), log.empty() ? "" : ("; log " + log).c_str());
}

// The coordinator knows nothing of the data service, which it may not even use.
Json data_service_of(const Json& description) {
  Json all = Json::array();
  for (const Json& task : description.value("tasks", Json::array()))
    if (is_data_role(task.value("role", ""))) all.push_back(task);
  return all;
}

void print(const Json& status, const Json& description) {
  std::printf(
      "step %lld after %s; %lld closures queued, %lld running, %lld run again; staleness %.1f "
      "(half at most %lld, 99 %% at most %lld, all at most %lld)\n",
      status.value("global_step", 0ll), seconds_text(status.value("uptime_seconds", 0.0)).c_str(),
      status.value("queued", 0ll), status.value("inflight", 0ll), status.value("retried", 0ll),
      status.value("staleness_mean", 0.0), status.value("staleness_p50", 0ll),
      status.value("staleness_p99", 0ll), status.value("staleness_max", 0ll));
  if (status.contains("program")) std::printf("%s", latest_text(status["program"]).c_str());
  const std::string newest = status.value("last_checkpoint", "");
  std::printf("checkpoints: %lld%s; updates lost: %lld\n", status.value("checkpoints", 0ll),
              newest.empty() ? "" : (", the last " + newest).c_str(),
              status.value("lost_updates", 0ll));
  std::printf("coordinator:%s\n", memory_text(status).c_str());
  for (const auto& task : status["ps"]) print_task(task, description);
  const std::vector<GpuSeen> gpus = gpus_in(status);
  for (const auto& task : status["workers"]) {
    print_task(task, description);
    for (const GpuSeen& gpu : gpus)
      if (gpu.task == task.value("task", "")) std::printf("    %s\n", gpu_text(gpu).c_str());
  }
  for (const Json& task : data_service_of(description)) print_process(task);
  if (status.contains("held_by_bound"))
    std::printf("  queue: %s\n", status["held_by_bound"].get<std::string>().c_str());
  for (const auto& one : status.value("stuck", Json::array()))
    std::printf("  stuck: %s\n", one.value("text", "").c_str());
  for (const auto& loss : status["losses"]) {
    double back = loss.value("back_after_seconds", -1.0);
    std::printf("  lost: %s after %s (%s), %s\n", loss.value("task", "").c_str(),
                seconds_text(loss.value("at_seconds", 0.0)).c_str(),
                loss.value("reason", "").c_str(),
                back < 0 ? "not yet back" : ("back after " + seconds_text(back)).c_str());
  }
}

// Prints what the folder of a run without a coordinator says.
void print_processes(const RunAddress& run) {
  const Json tasks = run.description.value("tasks", Json::array());
  const pid_t pid = process_of(run);
  if (pid < 0) {
    std::printf("the run in %s was killed: its process is there no more\n", run.dir.c_str());
    return;
  }
  if (run.description.value("kind", "") != "workers")
    std::printf("the run in %s is process %d, without a cluster; its terminal shows its progress\n",
                run.dir.c_str(), static_cast<int>(pid));
  else
    std::printf(
        "the run in %s is a group of %zu workers under process %d, without a coordinator; "
        "the terminal of worker 0 shows its progress\n",
        run.dir.c_str(), tasks.size() - data_service_of(run.description).size(),
        static_cast<int>(pid));
  std::printf("%s", latest_text(latest_progress(run.dir)).c_str());
  for (const Json& task : tasks) print_process(task);
}

// The folder's description, with the run's newest progress.
Json described(const RunAddress& run) {
  Json all = run.description;
  all["running"] = run.running && (!run.coordinator.address.empty() || process_of(run) > 0);
  if (Json told = latest_progress(run.dir); !told.empty()) all["program"] = std::move(told);
  return all;
}

// A run that has ended is no error: the command was asked how the run is doing, and this is the
// answer.
int run(const StatusRequest& request) {
  const RunAddress asked = find_run(request.run);
  if (!asked.running) {
    std::printf("%s\n",
                (request.as_json ? json_text(described(asked)) : ended_text(asked)).c_str());
    return 0;
  }
  if (asked.coordinator.address.empty()) {
    if (request.as_json)
      std::printf("%s\n", json_text(described(asked)).c_str());
    else
      print_processes(asked);
    return 0;
  }
  const std::string text = ask_status(asked.coordinator);
  Json answer = parse_json(text, "the answer of " + asked.coordinator.address);
  if (!request.as_json) {
    print(answer, asked.description);
    return 0;
  }
  if (Json data = data_service_of(asked.description); !data.empty()) answer["data_service"] = data;
  std::printf("%s\n", json_text(answer).c_str());
  return 0;
}

}  // namespace

void add_status_command(CLI::App& app, int& status) {
  auto request = std::make_shared<StatusRequest>();
  CLI::App* command = app.add_subcommand("status", "Show how a running cluster is doing");
  add_run_flags(*command, request->run);
  command->add_flag("--json", request->as_json, "As JSON");
  command->callback([request, &status] { status = run(*request); });
}

}  // namespace cairn::tools
