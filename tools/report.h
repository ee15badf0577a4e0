// The outcome of a run as JSON, for people's scripts: docs/report.md lists the fields.
#pragma once
#include <map>
#include <string>

#include "tools/trainer.h"

namespace cairn::tools {

// `restarts` by role, as the supervisor counted them.
std::string report_json(const Job& job, const TrainingOutcome& outcome,
                        const std::map<std::string, int>& restarts, const LinesRead& train_lines);

}  // namespace cairn::tools
