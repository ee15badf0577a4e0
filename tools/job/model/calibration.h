// `cairn evaluate --calibrate`: fits the probabilities of a saved binary model to the examples that
// it is evaluated on, and keeps what was fitted in the model (model/saved/replace_outputs.h).
//
// Afterwards the output "probability" is the calibrated one, and an output more, the last, is the
// network's own, "raw_probability": each fit begins with it, so that a calibration replaces the one
// before and "none" takes it away. All other outputs stay as they are, in their order. The
// metadata has what was fitted under "calibration".
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/graph/array.h"
#include "model/saved/saved_model.h"
#include "nn/metrics/classification_metrics.h"
#include "nn/metrics/metrics.h"
#include "tools/job/model/calibration_sample.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// The values that --calibrate may have.
const std::vector<std::string>& calibration_methods();

struct CalibrationScores {
  nn::LogLoss logloss = nn::LogLoss();
  nn::Calibration calibration = nn::Calibration();
  void add(const Array& probability, const Array& truth, const Array& weights);
};

struct CalibrationOutcome {
  std::string method, folder;
  std::int64_t examples = 0;
  Json fitted;                      // its numbers by name; empty for "none"
  CalibrationScores before, after;  // of the same examples
  bool was_calibrated = false;
  std::string warning;  // empty: there is nothing to warn of
};

// Add the batches of one pass over the examples, then keep().
//   Cost    12 bytes of memory per example, and while it fits some 60 more.
//   Thread  one.
class ModelCalibration {
 public:
  // Writes nothing yet.
  //   Errors  InvalidArgument: the job's objective is not binary. FailedPrecondition: the model has
  //           no output "probability". Those of verify_replaceable().
  ModelCalibration(const SavedModel& model, const Job& job, std::string method);
  // Adds a batch: the model's outputs, the truth, and weights, which count as 1 if undefined.
  void add(const std::vector<Array>& outputs, const Array& truth, const Array& weights);
  // Fits, and replaces the outputs of the model.
  //   Errors  those of the fits (verify_sample()) and of replace_outputs(); the model is then as
  //           it was.
  CalibrationOutcome keep();

 private:
  using Apply = std::function<Array(const Array& probability)>;
  Apply fit(CalibrationOutcome& outcome) const;
  CalibrationScores scores_after(const Apply& apply) const;
  void replace(const CalibrationOutcome& outcome, const Apply& apply) const;

  const SavedModel model_;
  const std::string method_;
  std::size_t told_ = 0;            // the place of "probability" among the outputs
  std::optional<std::size_t> raw_;  // that of "raw_probability"; none: it is not calibrated
  CalibrationSample sample_;        // of the network's own probabilities
  CalibrationScores before_;
};

// For people, lines with their ends; and as fields of the command's --json.
std::string calibration_text(const CalibrationOutcome& outcome);
Json calibration_json(const CalibrationOutcome& outcome);

// How a saved model is calibrated, in a few words; empty: it is not.
std::string calibration_of(const SavedModel& model);

}  // namespace cairn::tools
