#include "model/writers/run_history.h"

#include <utility>

#include "core/disk/disk.h"

namespace cairn {

RunHistory::RunHistory(const std::string& folder)
    : file_(system_disk().append(folder + "/" + kFile, AppendedFile::Existing::kGoOn)) {
  // A machine that lost power may have left half a line: what follows must not become a part of it.
  if (file_->size() > 0) file_->write("\n");
}

void RunHistory::write(const Json& line) { file_->write(json_text(line) + "\n"); }

void RunHistory::start(std::int64_t step) { write({{"kind", "start"}, {"step", step}}); }

void RunHistory::step(const Step& step) {
  write({{"kind", "step"},
         {"step", step.step},
         {"seconds", step.seconds},
         {"loss", step.loss},
         {"examples_per_s", rate_.at(step.seconds, step.examples)},
         {"staleness", step.staleness ? Json(*step.staleness) : Json(nullptr)}});
}

void RunHistory::evaluation(std::int64_t step, const std::string& data,
                            const std::vector<std::pair<std::string, double>>& metrics) {
  Json values = Json::object();
  for (const auto& [name, value] : metrics) values[name] = value;
  write({{"kind", "evaluation"}, {"step", step}, {"data", data}, {"metrics", std::move(values)}});
}

}  // namespace cairn
