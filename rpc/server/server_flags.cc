#include "rpc/server/server_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/processors.h"
#include "rpc/net/hello.h"
#include "rpc/server/command_line.h"
#include "rpc/server/token.h"

namespace cairn::rpc {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

// Those that have an address. A job is a list of them, or {"index": address}.
std::vector<TaskAddress> tasks_of(const Json& cluster) {
  std::vector<TaskAddress> all;
  for (const auto& [job, tasks] : cluster.items()) {
    if (!tasks.is_structured()) continue;
    for (const auto& [index, address] : tasks.items())
      if (address.is_string())
        all.push_back({str("/job:", job, "/task:", index), address.get<std::string>()});
  }
  return all;
}

constexpr const char* kAuto = "auto";

// Empty: it is none.
std::string wrong_threads(const std::string& text) {
  const bool digits =
      !text.empty() && text.size() < 5 && text.find_first_not_of("0123456789") == std::string::npos;
  if (digits && std::stoul(text) >= 1 && std::stoul(text) <= 1024) return "";
  return str("\"", text, "\" is no number of threads: a whole number from 1 to 1024 is wanted");
}
std::string wrong_threads_or_auto(const std::string& text) {
  const std::string wrong = text == kAuto ? "" : wrong_threads(text);
  return wrong.empty() ? wrong : wrong + ", or auto";
}

// The ps and workers of this task's host, itself included. It may listen at an address other than
// the one that the cluster knows it by.
std::size_t servers_beside(Role role, const ServerFlags& flags) {
  std::string own = flags.listen;
  std::vector<TaskAddress> servers;
  for (const TaskAddress& task : flags.cluster) {
    if (task.task == task_name(role, flags.index)) own = task.address;
    if (task.task.starts_with("/job:ps/") || task.task.starts_with("/job:worker/"))
      servers.push_back(task);
  }
  return std::max<std::size_t>(1, tasks_on_host_of(own, servers));
}

ThreadBound bound_of(Role role, const std::vector<TaskAddress>& cluster) {
  if (role == Role::kPs) return shards_bound();
  return lanes_bound(
      static_cast<std::size_t>(std::count_if(cluster.begin(), cluster.end(), [](const auto& task) {
        return task.task.starts_with("/job:worker/");
      })));
}

}  // namespace

// The environment fills in what the command line may then override. The TF_CONFIG comes last,
// because it depends on which flags were given.
ParsedFlags parse_server_flags(int argc, char** argv, const ServerProgram& program) {
  ParsedFlags parsed;
  ServerFlags& flags = parsed.flags;
  std::string token_file;
  std::string transport = environment("CAIRN_TRANSPORT");
  if (auto id = environment("CAIRN_CLUSTER_ID"); !id.empty()) flags.cluster_id = id;
  CLI::App app(program.description, program.name);
  auto* index =
      app.add_option("--index", flags.index, "Index of this task among those of its type");
  auto* listen = app.add_option("--listen", flags.listen,
                                "Address to listen at: host:port, or unix:/path; port 0: any");
  app.add_option("--cluster-id", flags.cluster_id, "The same for every task of a cluster");
  auto* token =
      app.add_option("--token", flags.token, "Shared secret; needed where other hosts can connect");
  app.add_option("--token-file", token_file, "File that holds the token")->excludes(token);
  app.add_flag("--insecure", flags.insecure,
               "Allow an address that other hosts can reach without a token");
  app.add_option("--log-file", flags.log_file, "Log to this file instead of standard error");
  app.add_option("--transport", transport, "auto, tcp or unix");
  app.add_option("--parent-pid", flags.parent_pid, "End when this process does");
  std::string threads = program.threads_auto ? kAuto : "1";
  auto* threads_flag = app.add_option(program.threads_flag, threads, program.threads_help)
                           ->check(program.threads_auto ? wrong_threads_or_auto : wrong_threads);
  std::size_t host_tasks = 0;
  if (program.threads_auto)
    app.add_option("--host-tasks", host_tasks,
                   str("How many ps and workers share this host's processors, for ",
                       program.threads_flag, " auto; 0: those that TF_CONFIG has here"));
  if (program.add_flags) program.add_flags(app);
  add_version_flag(app);
  if (const auto ended = parse_command_line(app, argc, argv)) {
    parsed.exit_code = *ended;
    return parsed;
  }
  if (flags.token.empty())
    flags.token = token_file.empty() ? token_of_environment() : read_token(token_file);
  if (!transport.empty()) flags.transport = parse_transport(transport);
  if (auto text = environment("TF_CONFIG"); !text.empty())
    apply_tf_config(text, program.role, {index->count() > 0, listen->count() > 0}, flags);
  if (threads != kAuto) {
    flags.threads = static_cast<std::uint32_t>(std::stoul(threads));
    flags.threads_why = threads_flag->count() > 0 ? "as " + program.threads_flag + " says" : "";
  } else {
    if (host_tasks == 0) host_tasks = servers_beside(program.role, flags);
    ThreadChoice choice =
        share_of_processors(usable_processors(), host_tasks, bound_of(program.role, flags.cluster));
    flags.threads = choice.threads;
    flags.threads_chosen = true;
    flags.threads_why = std::move(choice.why);
  }
  if (flags.listen.empty())
    throw InvalidArgumentError(
        str(program.name, " has no address to listen at: give --listen, or set TF_CONFIG"));
  parsed.run = true;
  return parsed;
}

// The form is TensorFlow's: {"cluster": {"worker": ["host:port", ...], ...}, "task": {"type",
// "index"}}. The index comes before the address, which is looked up by it. Nine digits always fit
// into it.
void apply_tf_config(const std::string& text, Role role, GivenFlags given, ServerFlags& flags) {
  const Json config = parse_json(text, "TF_CONFIG");
  if (!config.is_object())
    throw InvalidArgumentError("TF_CONFIG is not a JSON object with \"cluster\" and \"task\"");
  const std::string own(role_name(role));
  const Json task = config.value("task", Json::object());
  if (!task.is_object())
    throw InvalidArgumentError("TF_CONFIG: task must be an object with type and index");
  if (task.contains("type") && task["type"] != own)
    throw InvalidArgumentError(str("TF_CONFIG: task.type is ", json_text(task["type"]),
                                   ", this program is a \"", own, "\""));
  if (!given.index && task.contains("index")) {
    const Json& index = task["index"];
    // Some launchers write the number as text.
    const std::string digits = index.is_string() ? index.get<std::string>() : json_text(index);
    if (digits.empty() || digits.size() > 9 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      throw InvalidArgumentError(
          str("TF_CONFIG: task.index is ", json_text(index), ", a number is wanted"));
    flags.index = static_cast<std::uint32_t>(std::stoul(digits));
  }
  const Json cluster = config.value("cluster", Json::object());
  if (!cluster.is_object())
    throw InvalidArgumentError("TF_CONFIG: cluster must be an object of lists of \"host:port\"");
  flags.cluster = tasks_of(cluster);
  verify_distinct(flags.cluster);
  if (given.listen) return;
  const Json tasks = cluster.value(own, Json::array());
  if (!tasks.is_array() || flags.index >= tasks.size() || !tasks[flags.index].is_string())
    throw InvalidArgumentError(
        str("TF_CONFIG: cluster.", own, " names no address for task ", flags.index));
  flags.listen = tasks[flags.index].get<std::string>();
}

}  // namespace cairn::rpc
