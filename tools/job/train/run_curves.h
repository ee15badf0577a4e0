// The curves of a run, out of the history that it keeps in its folder
// (model/writers/run_history.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cairn::tools {

// Over steps, in their order. A value that is not a number is a gap.
struct RunCurve {
  struct Point {
    double step = 0, value = 0;
  };
  std::string what;  // "loss", "auc, test data", "examples/s", "staleness"
  std::vector<Point> points;
};

struct RunCurves {
  std::string name;  // of the run
  std::vector<RunCurve> curves;
  std::vector<std::string> left_out;  // lines that could not be read, with file, line and reason
};

// The curves in `text`, the lines of a history. `path` names the history in RunCurves::left_out.
// Lines of an unknown kind, which a later version may have written, are passed over.
//   Thread  any.
RunCurves curves_of(std::string_view text, const std::string& path);

// The curves of `run`, a run's folder or a history file.
//   Errors  NotFound: there is none; and those of reading.
RunCurves read_curves(const std::string& run);

}  // namespace cairn::tools
