#include "tools/job/toml/job_threshold.h"

#include <charconv>

#include "core/base/error.h"
#include "nn/metrics/best_threshold.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

constexpr const char* kWanted =
    "a number from 0 on and below 1, \"f1\", \"accuracy\", \"balanced_accuracy\", "
    "\"precision >= 0.9\" or \"recall >= 0.9\"";

// "precision >= 0.9": what stands behind the name and the sign, from above 0 to 1.
std::optional<double> least_of(const std::string& text, const std::string& name) {
  const std::string begin = name + " >= ";
  if (!text.starts_with(begin)) return std::nullopt;
  double least = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + begin.size(), last, least);
  const bool good = error == std::errc() && end == last && least > 0 && least <= 1;
  return good ? std::optional(least) : std::nullopt;
}

std::optional<nn::BestThresholdOptions> goal_of(const std::string& rule) {
  using nn::ThresholdGoal;
  if (rule == "f1") return {{.goal = ThresholdGoal::kF1}};
  if (rule == "accuracy") return {{.goal = ThresholdGoal::kAccuracy}};
  if (rule == "balanced_accuracy") return {{.goal = ThresholdGoal::kBalancedAccuracy}};
  if (const auto least = least_of(rule, "precision"))
    return {{.goal = ThresholdGoal::kRecall, .least = *least}};
  if (const auto least = least_of(rule, "recall"))
    return {{.goal = ThresholdGoal::kPrecision, .least = *least}};
  return std::nullopt;
}

}  // namespace

void read_threshold(TomlTable& table, JobThreshold& threshold) {
  const toml::node* found = table.node("threshold");
  if (found == nullptr) return;
  if (found->is_number()) {
    threshold.fixed = *found->value<double>();
    if (!(*threshold.fixed >= 0 && *threshold.fixed < 1)) table.fail(*found, "threshold", kWanted);
    return;
  }
  if (!found->is_string()) table.fail(*found, "threshold", kWanted);
  threshold.rule = *found->value<std::string>();
  if (!goal_of(threshold.rule)) table.fail(*found, "threshold", kWanted);
}

nn::BestThresholdOptions meaning_of(const std::string& rule) {
  const std::optional<nn::BestThresholdOptions> goal = goal_of(rule);
  CAIRN_CHECK(goal.has_value(), "a rule that was not verified: ", rule);
  return *goal;
}

}  // namespace cairn::tools
