// LatestProgress: the newest figures of a run, for `cairn status`:
//
//     {"training": {"step": 400, "loss": 0.41, "examples_per_s": 98000.0},
//      "evaluation": {"step": 300, "data": "test", "metrics": {"auc": 0.91}}}
//
// A number that is not known is null; without an evaluation yet, "evaluation" is missing.
//   Thread  one.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/json.h"

namespace cairn::tools {

class LatestProgress {
 public:
  void training(std::int64_t step, double loss, double examples_per_s);
  void evaluation(std::int64_t step, const std::string& data, Json metrics);
  // If a run resumes at `step`, it will report the steps above it anew.
  void forget_above(std::int64_t step);
  const Json& json() const { return told_; }

 private:
  Json told_ = Json::object();
};

// The same of a run without a coordinator, from the history in its folder; empty: there is none,
// or nothing in it that can be read.
//   Errors  the disk's.
Json latest_progress(const std::string& run_dir);

// As lines for people, each with its line end; what is not of that form is left out.
std::string latest_text(const Json& told);

}  // namespace cairn::tools
