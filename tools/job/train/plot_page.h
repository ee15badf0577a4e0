// Runs drawn as one HTML file that needs nothing else: a diagram (SVG) for each thing that was
// measured, over steps, with a curve per run.
#pragma once
#include <string>
#include <vector>

#include "tools/job/train/run_curves.h"

namespace cairn::tools {

// How such a file begins, by which it is known (user_files.h).
inline constexpr const char* kPlotBegins = "<!doctype html>\n<!-- cairn plot -->\n";

// Loss first, then metrics, examples/s and staleness. Colours go by the place of a run in `runs`
// and repeat after eight.
//   Thread  any.
std::string plot_page(const std::vector<RunCurves>& runs);

}  // namespace cairn::tools
