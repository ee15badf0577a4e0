// Reads a dataset through the data service of `cairn up --data-workers`, kills one of its data
// workers on the way, and lets `cairn status` show the run.
#include <signal.h>
#include <sys/types.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "core/base/json.h"
#include "core/base/program.h"
#include "data/dataset/dataset_iterator.h"
#include "service/consumer/distribute.h"

namespace {

using cairn::Dataset;
using cairn::Json;

const std::string kRun = std::getenv("CAIRN_RUN_DIR");

void kill_data_worker() {
  std::ifstream file(kRun + "/cluster.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json run = cairn::parse_json(text, "cluster.json");
  for (const Json& task : run.at("tasks"))
    if (task.value("role", "") == "data_worker" && task.value("index", -1) == 0)
      ::kill(task.value("pid", pid_t{-1}), SIGKILL);
}

}  // namespace

int main() {
  return cairn::run_program("read_data_service", [] {
    cairn::service::DistributeOptions options;
    options.job_name = "job";
    options.mode = cairn::service::ProcessingMode::kDynamic;
    const auto iterator = cairn::open(cairn::service::distribute(Dataset::range(1000), options));
    std::set<std::int64_t> values;
    while (const auto element = iterator->next()) {
      values.insert(element->at(0).item<std::int64_t>());
      if (iterator->ordinal() == 100) kill_data_worker();
    }
    // Elements come again after a death: values tell that none is missing.
    std::printf("%s elements, %zu values\n", iterator->ordinal() >= 1000 ? "1000" : "too few",
                values.size());
    std::fflush(stdout);
    return std::system((std::string(CAIRN_PROGRAMS "/cairn status ") + kRun).c_str());
  });
}
