#include "model/sidecar_evaluator.h"

#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/disk/disk.h"
#include "model/fitted_columns.h"
#include "model/model.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "strategy/base/strategy.h"

namespace cairn {
namespace {

// The vocabulary that the evaluator fitted must be the trainer's, or every id means another value.
//   Errors  FailedPrecondition: it is another. NotFound: the checkpoint was removed.
void verify_features(const std::string& checkpoint, const Dataset& batches) {
  const std::vector<FeatureColumn> columns = feature_columns_of(batches);
  if (columns.empty()) return;
  const Json saved = parse_json(storage::read_manifest(storage::any_disk(), checkpoint).metadata,
                                "the metadata of " + checkpoint);
  if (!saved.is_object() || !saved.contains("fit")) return;
  const std::string found =
      first_difference(saved["fit"].value("features", Json::object()), fitted_json(columns));
  if (found.empty()) return;
  throw FailedPreconditionError(
      str("SidecarEvaluator: the model of the checkpoint ", checkpoint,
          " was trained on other features: ", found,
          "; make the feature columns of what fit() found in the training data"));
}

}  // namespace

SidecarEvaluator::SidecarEvaluator(Model& model, Dataset batches, SidecarOptions options)
    : model_(model), batches_(std::move(batches)), options_(std::move(options)) {
  if (options_.checkpoints.empty())
    throw InvalidArgumentError("SidecarEvaluator: `checkpoints` must name the folder to follow");
}

std::int64_t SidecarEvaluator::run() {
  model_.build(batches_.element_spec());
  const storage::CheckpointFolder folder(storage::any_disk(), options_.checkpoints);
  std::int64_t judged = 0;
  std::uint64_t newest = 0;
  TimePoint last = system_clock().now();
  while (options_.max_evaluations == 0 || judged < options_.max_evaluations) {
    const auto found = folder.latest();
    if (!found || found->id == newest) {
      if (system_clock().now() - last >= options_.patience) break;
      std::this_thread::sleep_for(options_.poll);
      continue;
    }
    newest = found->id;
    try {
      verify_features(found->path, batches_);
      model_.strategy().restore(found->path, {.new_data = true}).expect_partial();
    } catch (const NotFoundError& error) {
      log_warning("passed over: ", error.what());
      continue;
    }
    const Logs logs = model_.evaluate(batches_);
    if (options_.on_evaluation) options_.on_evaluation(found->path, logs);
    ++judged;
    last = system_clock().now();
  }
  return judged;
}

}  // namespace cairn
