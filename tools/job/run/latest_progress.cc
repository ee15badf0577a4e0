#include "tools/job/run/latest_progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "model/writers/run_history.h"

namespace cairn::tools {
namespace {

double told_number(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

std::int64_t told_step(const Json& object) {
  const auto found = object.find("step");
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::string told_text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json told_object(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : Json::object();
}

void take_line(const Json& line, LatestProgress& newest) {
  if (!line.is_object()) return;
  const std::string kind = told_text(line, "kind");
  if (kind == "start") newest.forget_above(told_step(line));
  if (kind == "step")
    newest.training(told_step(line), told_number(line, "loss"),
                    told_number(line, "examples_per_s"));
  if (kind == "evaluation")
    newest.evaluation(told_step(line), told_text(line, "data"), told_object(line, "metrics"));
}

std::string told_digits(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

void LatestProgress::training(std::int64_t step, double loss, double examples_per_s) {
  told_["training"] = {{"step", step}, {"loss", loss}, {"examples_per_s", examples_per_s}};
}

void LatestProgress::evaluation(std::int64_t step, const std::string& data, Json metrics) {
  told_["evaluation"] = {{"step", step}, {"data", data}, {"metrics", std::move(metrics)}};
}

void LatestProgress::forget_above(std::int64_t step) {
  for (const char* part : {"training", "evaluation"})
    if (told_.contains(part) && told_step(told_[part]) > step) told_.erase(part);
}

// A line that is damaged, or that is being written at this moment, is passed over.
Json latest_progress(const std::string& run_dir) {
  const std::string path = run_dir + "/" + RunHistory::kFile;
  if (run_dir.empty() || !system_disk().exists(path)) return Json::object();
  const std::string all = system_disk().read(path);
  LatestProgress newest;
  for (std::string_view rest = all; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    try {
      take_line(parse_json(rest.substr(0, end), "a line of the history"), newest);
    } catch (const InvalidArgumentError&) {
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return newest.json();
}

std::string latest_text(const Json& told) {
  if (!told.is_object()) return "";
  std::string text;
  if (const Json training = told_object(told, "training"); !training.empty()) {
    text = str("training: step ", told_step(training));
    if (const double loss = told_number(training, "loss"); std::isfinite(loss))
      text += told_digits(", loss %.4f", loss);
    if (const double rate = told_number(training, "examples_per_s"); std::isfinite(rate))
      text += told_digits(", %.0f examples/s", rate);
    text += "\n";
  }
  const Json evaluation = told_object(told, "evaluation");
  if (evaluation.empty()) return text;
  text += str("evaluation: step ", told_step(evaluation), ", ", told_text(evaluation, "data"),
              " data:");
  const Json metrics = told_object(evaluation, "metrics");
  for (const auto& [name, value] : metrics.items())
    text += str("  ", name, value.is_number() ? told_digits(" %.4f", value.get<double>()) : " -");
  return text + "\n";
}

}  // namespace cairn::tools
