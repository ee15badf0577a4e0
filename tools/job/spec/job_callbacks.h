// [callbacks] of a job file: files that tell of the run while it trains, and what is done when it
// gets no better.
#pragma once
#include <functional>
#include <string>

namespace cairn::tools {

class TomlTable;
struct Job;

// [callbacks.reduce_lr_on_plateau]: as model/callbacks.h has it, by evaluations instead of epochs.
struct JobPlateau {
  bool given = false;
  std::string monitor;  // a metric; empty: the first of the evaluation's
  double factor = 0.1;
  int patience = 10, cooldown = 0;  // evaluations
  double min_delta = 1e-4, min_lr = 0;
};

// A file that the user names, and where: "JOB.toml:7: callbacks.csv_logger".
struct JobOutput {
  std::string path;  // empty: there is none
  std::string place;
};

struct JobCallbacks {
  JobOutput csv_logger, tensorboard;  // a file, a folder
  JobPlateau plateau;
};

//   Errors  InvalidArgument: file, line and what is wrong.
void read_callbacks(TomlTable table, JobCallbacks& callbacks);
// `place` says where a key stands (job_limits.h).
void verify_callbacks(const Job& job,
                      const std::function<std::string(const std::string& key)>& place);

}  // namespace cairn::tools
