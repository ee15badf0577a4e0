#include "tools/cli/plot_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/disk/output_file.h"
#include "tools/job/train/plot_page.h"
#include "tools/job/train/run_curves.h"
#include "tools/job/train/user_files.h"

namespace cairn::tools {
namespace {

constexpr std::size_t kToldLines = 5;  // of a file whose every line is damaged

struct PlotRequest {
  std::vector<std::string> runs;
  std::string out;
  bool overwrite = false;
};

void tell_left_out(const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < std::min(lines.size(), kToldLines); ++i)
    std::fprintf(stderr, "%s\n", lines[i].c_str());
  if (lines.size() > kToldLines)
    std::fprintf(stderr, "and %zu lines more\n", lines.size() - kToldLines);
}

// Two runs/a and other/a are called as they were given.
void tell_apart(std::vector<RunCurves>& runs, const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const RunCurves& run : runs) names.push_back(run.name);
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (std::ranges::count(names, names[i]) > 1) runs[i].name = given[i];
}

int plot(const PlotRequest& request) {
  verify_plot_path(request.out, request.overwrite ? Overwrite::kYes : Overwrite::kNo);
  std::vector<RunCurves> runs;
  for (const std::string& run : request.runs) {
    runs.push_back(read_curves(run));
    tell_left_out(runs.back().left_out);
    if (runs.back().curves.empty())
      std::fprintf(stderr, "%s: there is nothing to draw in its history yet\n", run.c_str());
  }
  tell_apart(runs, request.runs);
  OutputFile file(request.out);
  file.write(plot_page(runs));
  file.finish();
  return 0;
}

}  // namespace

void add_plot_command(CLI::App& app, int& status) {
  auto request = std::make_shared<PlotRequest>();
  CLI::App* command = app.add_subcommand(
      "plot", "Draw loss, metrics, examples/s and staleness of runs as one HTML file");
  command->add_option("runs", request->runs, "Folders of runs, or their history.jsonl")->required();
  command->add_option("--out", request->out, "The HTML file to write")->required();
  command->add_flag("--overwrite", request->overwrite, "Replace a file that is not a plot");
  command->callback([request, &status] { status = plot(*request); });
}

}  // namespace cairn::tools
