// The outcome of a run as JSON, for scripts: docs/report.md lists the fields, and they only ever
// grow in number.
#pragma once
#include <map>
#include <string>

#include "tools/job/run/trainer.h"

namespace cairn::tools {

// The report's text. `restarts` by role, as the supervisor counted them; `train_lines` as the
// training data was read.
std::string report_json(const Job& job, const TrainingOutcome& outcome,
                        const std::map<std::string, int>& restarts, const LinesRead& train_lines);

}  // namespace cairn::tools
