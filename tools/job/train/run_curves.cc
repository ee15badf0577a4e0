#include "tools/job/train/run_curves.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "model/writers/run_history.h"

namespace cairn::tools {
namespace {

const Json& field(const Json& line, const char* name) {
  if (!line.is_object()) throw InvalidArgumentError("it is not an object");
  const auto found = line.find(name);
  if (found == line.end()) throw InvalidArgumentError(str("it has no \"", name, "\""));
  return *found;
}

std::string text_in(const Json& line, const char* name) {
  const Json& value = field(line, name);
  if (!value.is_string()) throw InvalidArgumentError(str("\"", name, "\" is not a text"));
  return value.get<std::string>();
}

double number_of(const Json& value, const std::string& name) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) throw InvalidArgumentError(str("\"", name, "\" is not a number"));
  return value.get<double>();
}

double step_in(const Json& line) {
  const double step = number_of(field(line, "step"), "step");
  if (!std::isfinite(step)) throw InvalidArgumentError("\"step\" is not a number");
  return step;
}

class Reader {
 public:
  // All of a line is looked at before any of it is taken.
  void take(const Json& line) {
    const std::string kind = text_in(line, "kind");
    if (kind == "start") forget_above(step_in(line));
    if (kind == "step") take_step(line);
    if (kind == "evaluation") take_evaluation(line);
  }
  std::vector<RunCurve> curves() {
    std::erase_if(curves_, [](const RunCurve& curve) {
      return std::ranges::all_of(
          curve.points, [](const RunCurve::Point& point) { return std::isnan(point.value); });
    });
    return std::move(curves_);
  }

 private:
  void take_step(const Json& line) {
    const double step = step_in(line);
    double values[3];
    constexpr const char* kFields[] = {"loss", "examples_per_s", "staleness"};
    for (int i = 0; i < 3; ++i) values[i] = number_of(field(line, kFields[i]), kFields[i]);
    constexpr const char* kNames[] = {"loss", "examples/s", "staleness"};
    for (int i = 0; i < 3; ++i) curve(kNames[i]).push_back({step, values[i]});
  }
  void take_evaluation(const Json& line) {
    const double step = step_in(line);
    const std::string data = text_in(line, "data");
    const Json& metrics = field(line, "metrics");
    if (!metrics.is_object()) throw InvalidArgumentError("\"metrics\" is not an object");
    for (const auto& [name, value] : metrics.items()) number_of(value, name);
    for (const auto& [name, value] : metrics.items())
      curve(str(name, ", ", data, " data")).push_back({step, number_of(value, name)});
  }
  void forget_above(double step) {
    for (RunCurve& curve : curves_)
      std::erase_if(curve.points, [&](const RunCurve::Point& point) { return point.step > step; });
  }
  std::vector<RunCurve::Point>& curve(const std::string& what) {
    const auto found = std::ranges::find(curves_, what, &RunCurve::what);
    if (found != curves_.end()) return found->points;
    curves_.push_back({what, {}});
    return curves_.back().points;
  }

  std::vector<RunCurve> curves_;
};

}  // namespace

RunCurves curves_of(std::string_view text, const std::string& path) {
  Reader reader;
  RunCurves run;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \r\t") == std::string_view::npos) continue;
    try {
      reader.take(parse_json(line, "the line"));
    } catch (const InvalidArgumentError& error) {
      run.left_out.push_back(str(path, ":", number, ": left out: ", error.what()));
    }
  }
  run.curves = reader.curves();
  return run;
}

RunCurves read_curves(const std::string& run) {
  namespace fs = std::filesystem;
  const bool folder = fs::is_directory(run);
  const std::string path = folder ? (fs::path(run) / RunHistory::kFile).string() : run;
  if (!system_disk().exists(path))
    throw NotFoundError(str("there is no ", path,
                            folder
                                ? ": name the folder of a run of `cairn train`, which the run told "
                                  "at its beginning"
                                : ": name a run's folder or its history.jsonl"));
  RunCurves curves = curves_of(system_disk().read(path), path);
  const fs::path named = fs::absolute(folder ? fs::path(run) : fs::path(run).parent_path());
  const fs::path whole = named.lexically_normal();
  curves.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  return curves;
}

}  // namespace cairn::tools
