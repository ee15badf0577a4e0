#include "tools/cli/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "data/dataset/pipes.h"

namespace cairn::tools {

void add_model_options(CLI::App& command, ModelOptions& options, const std::string& about_data) {
  command.add_option("model", options.model, "A saved model, or the folder of its run")->required();
  command.add_option("--data", options.files, about_data)->required();
  command.add_option("--batch", options.batch, "Examples that are computed at once")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24))
      ->capture_default_str();
  command.add_flag("--skip-bad-rows", options.skip_bad_rows,
                   "Count rows that do not fit and leave them out, instead of ending at the first");
  command.add_option("--device", options.device, "What computes: cpu:0, gpu:0, ...")
      ->capture_default_str();
}

std::vector<std::string> ModelOptions::paths() const {
  std::vector<std::string> all = files;
  std::ranges::replace(all, "-", kStandardInput);
  return all;
}

LineEvents events_into(LinesRead& met) {
  LineEvents events;
  events.on_skipped_row = [&met](const std::string& why) { met.first_skipped.push_back(why); };
  events.on_empty_file = [&met](const std::string& path) { met.empty_files.push_back(path); };
  return events;
}

}  // namespace cairn::tools
