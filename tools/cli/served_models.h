// The models that the command line of `cairn serve` names, and what it says of each.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "serving/server/model_directory.h"

namespace cairn::tools {

struct ServedModels {
  std::vector<std::string> paths, pins, labels, candidates, follow;
  std::string cluster = "cairn", ps_token_file;  // of ps that are followed by their addresses
  double follow_rate = 64;                       // MB a second of each ps
  bool consistent = false, from_ps = false;
  double ps_deadline_ms = 100;

  bool none() const { return paths.empty() && follow.empty(); }
};

void add_model_flags(CLI::App& command, ServedModels& models);

//   Errors  InvalidArgument: an option that names a model which there is not, or that does not fit
//           another one; says what to write.
std::vector<serving::ModelToServe> models_of(const ServedModels& wanted);

}  // namespace cairn::tools
