// The options that `cairn predict` and `cairn evaluate` share: the model, and the files that it
// reads.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset/lines_read.h"

namespace CLI {
class App;
}

namespace cairn::tools {

struct ModelOptions {
  std::string model, device = "cpu:0";
  std::vector<std::string> files;
  std::int64_t batch = 4096;
  bool skip_bad_rows = false;
  // The files, "-" as the name of standard input.
  std::vector<std::string> paths() const;
};

// Adds the options to `command`; `about_data` says of what form the files are.
void add_model_options(CLI::App& command, ModelOptions& options, const std::string& about_data);
// Events of reading that go into `met`, which outlives them.
LineEvents events_into(LinesRead& met);

}  // namespace cairn::tools
