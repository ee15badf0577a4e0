#include "tools/launch/data_roles.h"

#include <unistd.h>

#include "core/base/error.h"

namespace cairn::tools {
namespace {

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : ",") + one;
  return text;
}

}  // namespace

std::string log_file(const RunFacts& run, const std::string& role, int index) {
  return str(run.dir, "/logs/", role, "-", index, ".log");
}

DataRoles reserve_data_roles(std::vector<ReservedPort>& ports, int data_workers) {
  if (data_workers == 0) return {};
  return {reserve_addresses(ports, 1), reserve_addresses(ports, data_workers)};
}

std::vector<std::string> DataRoles::environment() const {
  if (dispatcher.empty()) return {};
  return {"CAIRN_DATA_SERVICE=" + dispatcher.front()};
}

std::vector<RoleSpec> DataRoles::specs(const RunFacts& run) const {
  std::vector<RoleSpec> roles;
  const auto add = [&](const std::string& role, std::vector<std::string> more) {
    const int index = role == "dispatcher" ? 0 : static_cast<int>(roles.size()) - 1;
    const std::string log = log_file(run, role, index);
    Command command{.arguments = {run.programs + "/cairn-data", "--listen",
                                  addresses(role)[static_cast<std::size_t>(index)], "--index",
                                  std::to_string(index), "--cluster-id", run.cluster_id,
                                  "--token-file", run.token_file, "--log-file", log, "--transport",
                                  run.transport, "--parent-pid", std::to_string(::getpid())},
                    // The cluster's TF_CONFIG knows nothing of these tasks.
                    .environment = {"TF_CONFIG="},
                    .output_file = log};
    command.arguments.insert(command.arguments.end(), more.begin(), more.end());
    roles.push_back({.role = role, .index = index, .command = std::move(command)});
  };
  if (dispatcher.empty()) return roles;
  add("dispatcher", {"--role", "dispatcher", "--journal", run.dir + "/data-service", "--workers",
                     joined(workers)});
  for (std::size_t i = 0; i < workers.size(); ++i)
    add("data_worker", {"--role", "worker", "--dispatcher", dispatcher.front()});
  return roles;
}

}  // namespace cairn::tools
