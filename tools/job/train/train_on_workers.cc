#include "tools/job/train/train_on_workers.h"

#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/disk/disk.h"
#include "tools/job/train/train_flags.h"
#include "tools/launch/kill_plan.h"
#include "tools/launch/local_cluster.h"
#include "tools/launch/run_folder.h"
#include "tools/launch/worker_processes.h"

namespace cairn::tools {
namespace {

// Every start of the group means the same checkpoint by --resume, though the folder may hold newer
// ones by then. Folder and kills belong to this process, the members' parent.
WorkerProcessesOptions options_of(TrainRequest request, const Job& job, const std::string& job_file,
                                  const std::string& programs) {
  request.resume = find_resume(request, job, checkpoint_folder(request, job, request.dir));
  WorkerProcessesOptions options;
  options.workers = job.cluster.workers;
  options.program = {(programs.empty() ? program_folder() : programs) + "/cairn-coordinator"};
  for (std::string& argument : coordinator_arguments(request, job_file))
    options.program.push_back(std::move(argument));
  options.transport = job.cluster.transport;
  options.dir = request.dir;
  options.speaker = "cairn train";
  for (const auto& kill : request.kills) options.kills.push_back(parse_kill(kill));
  return options;
}

// The last lines of a file, for a message; empty if it cannot be read.
std::string end_of(const std::string& file, std::size_t lines) try {
  std::string text = system_disk().read(file);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t at = text.size();
  for (std::size_t i = 0; i < lines && at != std::string::npos; ++i)
    at = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  return at == std::string::npos ? text : text.substr(at + 1);
} catch (const Error&) {
  return "";
}

}  // namespace

int supervise_workers(const TrainRequest& request, const Job& job) {
  return WorkerProcesses(options_of(request, job, request.job_file, "")).run();
}

TrainedJob train_on_workers(const TrainRequest& request, const Job& job, const RunHost& host) {
  TrainRequest own = request;
  own.dir = std::filesystem::absolute(own.dir.empty() ? new_run_folder() : own.dir)
                .lexically_normal()
                .string();
  TrainedJob trained{.folder = own.dir, .checkpoints = checkpoint_folder(own, job, own.dir)};
  system_disk().make_folder(own.dir);
  if (own.report.empty()) own.report = own.dir + "/report.json";
  own.overwrite = own.overwrite || request.report.empty();
  std::string job_file = request.job_file;
  std::vector<std::string> beside;
  if (!request.job_values.empty()) {
    job_file = own.dir + "/job.toml";
    system_disk().write_atomically(job_file, job.text);
    const std::filesystem::path folder = request.beside.empty() ? "." : request.beside;
    beside = {"--beside=" + std::filesystem::absolute(folder).lexically_normal().string()};
  }
  WorkerProcessesOptions options = options_of(own, job, job_file, host.programs);
  options.program.insert(options.program.end(), beside.begin(), beside.end());
  options.interrupted = &host.interrupted;
  options.say = [&host](const std::string& text) { host.output.say(text); };
  const int status = WorkerProcesses(std::move(options)).run();
  trained.interrupted = host.interrupted;
  if (status != 0 && trained.interrupted == 0)
    throw AbortedError(str("the group of workers ended with status ", status,
                           "; its chief's last lines (", own.dir, "/logs/worker-0.log):\n",
                           end_of(own.dir + "/logs/worker-0.log", 5)));
  if (!system_disk().exists(own.report)) return trained;
  trained.report = system_disk().read(own.report);
  const Json report = parse_json(trained.report, own.report);
  if (report.at("model").is_string()) trained.model = report.at("model").get<std::string>();
  if (report.at("error").is_string()) trained.failure = report.at("error").get<std::string>();
  return trained;
}

}  // namespace cairn::tools
