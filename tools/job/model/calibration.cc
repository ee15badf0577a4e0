#include "tools/job/model/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "model/saved/replace_outputs.h"
#include "tools/job/model/isotonic.h"
#include "tools/job/model/platt_scaling.h"

namespace cairn::tools {
namespace {

constexpr const char* kTold = "probability";
constexpr const char* kRaw = "raw_probability";
constexpr const char* kField = "calibration";  // of the metadata
constexpr const char* kNone = "none";
constexpr const char* kPlatt = "platt";
constexpr const char* kIsotonic = "isotonic";

std::optional<std::size_t> place_of(const std::vector<ColumnSpec>& outputs, const char* name) {
  const auto found = std::ranges::find(outputs, name, &ColumnSpec::name);
  if (found == outputs.end()) return std::nullopt;
  return static_cast<std::size_t>(found - outputs.begin());
}

void append(std::vector<float>& all, const Array& more) {
  const Tensor values = more.eval();
  all.insert(all.end(), values.values<float>().begin(), values.values<float>().end());
}

std::string number_text(const char* form, double value) {
  char text[40];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string scores_text(const CalibrationScores& scores) {
  return "logloss " + number_text("%.4f", scores.logloss.result()) + "  calibration " +
         number_text("%.4f", scores.calibration.result());
}

Json scores_json(const CalibrationScores& scores) {
  return {{"logloss", scores.logloss.result()}, {"calibration", scores.calibration.result()}};
}

// The new probability as a formula of the network's own.
std::string formula_text(const CalibrationOutcome& outcome) {
  if (outcome.method == kPlatt) {
    const double intercept = outcome.fitted["intercept"];
    return str("sigmoid(", number_text("%.4g", outcome.fitted["slope"]), " logit ",
               intercept < 0 ? "- " : "+ ", number_text("%.4g", std::abs(intercept)), ")");
  }
  return str("a rising line through ", outcome.fitted["points"].get<std::size_t>(), " points");
}

}  // namespace

const std::vector<std::string>& calibration_methods() {
  static const std::vector<std::string> all = {kPlatt, kIsotonic, kNone};
  return all;
}

void CalibrationScores::add(const Array& probability, const Array& truth, const Array& weights) {
  logloss.add(logloss.summary(probability, truth, weights).eval());
  calibration.add(calibration.summary(probability, truth, weights).eval());
}

ModelCalibration::ModelCalibration(const SavedModel& model, const Job& job, std::string method)
    : model_(model), method_(std::move(method)), raw_(place_of(model.outputs, kRaw)) {
  if (job.model.objective != "binary")
    throw InvalidArgumentError(
        str("--calibrate: the objective of the model is \"", job.model.objective,
            "\", and probabilities of objective \"binary\" alone are calibrated: leave --calibrate "
            "out"));
  const auto told = place_of(model.outputs, kTold);
  if (!told)
    throw FailedPreconditionError(str("--calibrate: the model in ", model.folder,
                                      " has no output \"", kTold,
                                      "\": name a model that `cairn train` has saved"));
  told_ = *told;
  if (method_ != kNone || raw_) verify_replaceable(model.folder);
}

void ModelCalibration::add(const std::vector<Array>& outputs, const Array& truth,
                           const Array& weights) {
  before_.add(outputs.at(told_), truth, weights);
  append(sample_.probabilities, outputs.at(raw_.value_or(told_)));
  append(sample_.labels, truth);
  if (weights.defined()) append(sample_.weights, weights);
}

CalibrationOutcome ModelCalibration::keep() {
  CalibrationOutcome outcome{.method = method_, .folder = model_.folder};
  outcome.examples = static_cast<std::int64_t>(sample_.labels.size());
  outcome.was_calibrated = raw_.has_value();
  const Apply apply = fit(outcome);
  outcome.before = before_;
  outcome.after = scores_after(apply);
  if (method_ != kNone || raw_) replace(outcome, apply);
  return outcome;
}

ModelCalibration::Apply ModelCalibration::fit(CalibrationOutcome& outcome) const {
  if (method_ == kPlatt) {
    const PlattScaling scaling = fit_platt(sample_);
    outcome.fitted = {{"slope", scaling.slope}, {"intercept", scaling.intercept}};
    if (scaling.slope <= 0)
      outcome.warning =
          "warning: the slope of the calibration is not above 0: on these examples the model ranks "
          "the wrong way round, and so calibrated probabilities have the reverse order. See "
          "whether "
          "their labels mean what those of the training data meant; --calibrate none takes it away";
    return [scaling](const Array& probability) { return calibrated(scaling, probability); };
  }
  if (method_ == kIsotonic) {
    const IsotonicPoints points = fit_isotonic(sample_);
    outcome.fitted = {{"points", points.predictions.size()}};
    if (points.probabilities.front() == points.probabilities.back())
      outcome.warning =
          "warning: the calibration gives every example the same probability: on these examples "
          "the model ranks no better than by chance. See whether their labels mean what those of "
          "the training data meant; --calibrate none takes it away";
    return [points](const Array& probability) { return calibrated(points, probability); };
  }
  outcome.fitted = Json::object();
  return [](const Array& probability) { return probability; };
}

// By the operations that the model's graph gets, piece by piece.
CalibrationScores ModelCalibration::scores_after(const Apply& apply) const {
  constexpr std::size_t kPiece = 1 << 14;
  CalibrationScores scores;
  for (std::size_t i = 0; i < sample_.labels.size(); i += kPiece) {
    const auto piece = [&](const std::vector<float>& all) -> Array {
      if (all.empty()) return {};
      const auto part = std::span(all).subspan(i, std::min(kPiece, all.size() - i));
      return Tensor::of<float>({static_cast<std::int64_t>(part.size())}, part);
    };
    scores.add(apply(piece(sample_.probabilities)), piece(sample_.labels), piece(sample_.weights));
  }
  return scores;
}

void ModelCalibration::replace(const CalibrationOutcome& outcome, const Apply& apply) const {
  Json metadata = parse_json(model_.metadata, "the model's metadata");
  metadata.erase(kField);
  if (method_ != kNone) {
    Json kept = {{"method", method_}, {"examples", outcome.examples}};
    kept.update(outcome.fitted);
    metadata[kField] = std::move(kept);
  }
  const auto make = [&](const Outputs& today) {
    const Array raw = today[raw_.value_or(told_)].second;
    Outputs made;
    for (const auto& [name, value] : today)
      if (name != kRaw) made.emplace_back(name, name == kTold ? apply(raw) : value);
    if (method_ != kNone) made.emplace_back(kRaw, raw);
    return made;
  };
  replace_outputs(model_.folder, make, json_text(metadata));
}

std::string calibration_text(const CalibrationOutcome& outcome) {
  const std::string scores =
      str("  before: ", scores_text(outcome.before), "\n  after:  ", scores_text(outcome.after));
  if (outcome.method != kNone)
    return str("calibrated by ", outcome.method, " on ", outcome.examples, " examples, kept in ",
               outcome.folder, ": probability is ", formula_text(outcome), "\n", scores,
               ", on the examples that it was fitted on: judge it on others\n");
  if (!outcome.was_calibrated)
    return str("the model in ", outcome.folder, " is not calibrated: it is as it was\n");
  return str("the calibration is taken away from ", outcome.folder,
             ": probability is the network's own again\n", scores, "\n");
}

Json calibration_json(const CalibrationOutcome& outcome) {
  Json all = {{"method", outcome.method},
              {"examples", outcome.examples},
              {"model", outcome.folder},
              {"fitted_on_these_examples", outcome.method != kNone},
              {"before", scores_json(outcome.before)},
              {"after", scores_json(outcome.after)}};
  all.update(outcome.fitted);
  return all;
}

std::string calibration_of(const SavedModel& model) {
  const Json metadata = parse_json(model.metadata, "the model's metadata");
  const auto kept = metadata.find(kField);
  if (kept == metadata.end() || !kept->is_object() || !place_of(model.outputs, kRaw)) return "";
  return str("calibrated by ", kept->value("method", "a method without a name"), " on ",
             kept->value("examples", std::int64_t{0}), " examples; ", kRaw,
             " is the network's own");
}

}  // namespace cairn::tools
