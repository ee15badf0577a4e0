#include "tools/cli/run_rows.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "rpc/server/token.h"

namespace cairn::tools {
namespace {

std::string token_at(const std::string& file) {
  return file.empty() ? rpc::token_of_environment() : rpc::read_token(file);
}

std::vector<std::string> split(const std::string& addresses) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= addresses.size();) {
    const std::size_t end = std::min(addresses.find(',', begin), addresses.size());
    all.push_back(addresses.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

}  // namespace

bool is_run_folder(const std::string& run) {
  std::error_code error;
  return std::filesystem::is_directory(run, error);
}

RowStreamOptions rows_of_run(const std::string& run, const std::string& cluster,
                             const std::string& token_file) {
  if (!is_run_folder(run)) {
    if (run.find(':') == std::string::npos)
      throw NotFoundError(str("there is no run in ", run,
                              ": name a run's folder, or the addresses of its ps (HOST:PORT,...)"));
    return {.ps = split(run), .cluster = cluster, .token = token_at(token_file)};
  }
  const std::string file = run + "/cluster.json";
  if (!system_disk().exists(file))
    throw UnavailableError(str("the run in ", run, " has not begun: it has no cluster.json"));
  const Json description = parse_json(system_disk().read(file), file);
  if (!description.value("running", false))
    throw UnavailableError(str("the run in ", run, " has ended"));
  RowStreamOptions options{.cluster = description.value("cluster_id", cluster),
                           .token = token_at(description.value("token_file", token_file))};
  for (const Json& task : description.value("tasks", Json::array()))
    if (task.value("role", "") == "ps") options.ps.push_back(task.value("address", ""));
  if (options.ps.empty())
    throw FailedPreconditionError(
        str("the run in ", run, " trains without parameter servers, so there are no rows to ",
            "follow: serve the run itself, whose checkpoints are served as they come"));
  return options;
}

}  // namespace cairn::tools
