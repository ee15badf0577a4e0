// model.threshold: the probability above which a binary model decides for 1.
//
//   0.3                 that one
//   "f1"                the one by which validation data is decided best; also "accuracy",
//                       "balanced_accuracy"
//   "precision >= 0.9"  of those with such a precision, the one with the highest recall
//   "recall >= 0.8"     of those with such a recall, the one with the highest precision
#pragma once
#include <optional>
#include <string>

namespace cairn::nn {
struct BestThresholdOptions;
}

namespace cairn::tools {

class TomlTable;

struct JobThreshold {
  std::optional<double> fixed = {};
  std::string rule = "";  // empty: none

  bool given() const { return fixed || !rule.empty(); }
};

// The table's key `threshold`, if it is there.
//   Errors  InvalidArgument: file, line and what is wanted.
void read_threshold(TomlTable& table, JobThreshold& threshold);

// The goal that a rule stands for. The rule must be one that read_threshold() accepted.
nn::BestThresholdOptions meaning_of(const std::string& rule);

}  // namespace cairn::tools
