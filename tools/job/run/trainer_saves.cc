// The part of the Trainer that saves at the end: the last checkpoint, and the model on disk.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "model/steps/runner_of.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "tools/job/model/trained_model.h"
#include "tools/job/run/trainer.h"

namespace cairn::tools {
namespace {

bool is_of_the_disk(Code code) {
  return code == Code::kResourceExhausted || code == Code::kPermissionDenied ||
         code == Code::kNotFound || code == Code::kDataLoss || code == Code::kUnknown;
}

}  // namespace

// If nothing was left to train, no step has made the variables: the checkpoint that was restored is
// the model.
void Trainer::save_checkpoint() {
  if (restored_) {
    outcome_.checkpoint = options_.resume;
    return;
  }
  const std::optional<ErrorParts> first = save_into(policy_);
  if (!first) return;
  const std::string& spare = options_.spare_folder;
  if (is_of_the_disk(first->code) && !spare.empty() && spare != policy_.folder &&
      !save_into({.folder = spare, .keep_last = policy_.keep_last}))
    return output_.say(str("the last checkpoint could not be saved in ", policy_.folder, ": ",
                           first->message,
                           "; it is in the run's own folder instead: ", outcome_.checkpoint));
  if (first->code == Code::kResourceExhausted && remove_older() && !save_into(policy_)) return;
  add_failure(str("the model could not be saved at the end: ", first->message));
}

// Why it failed; empty: it succeeded.
std::optional<ErrorParts> Trainer::save_into(const CheckpointPolicy& policy) {
  try {
    outcome_.checkpoint = runner_.save(policy, metadata());
    return std::nullopt;
  } catch (const Error&) {
    return error_parts(std::current_exception());
  }
}

// All of this run's checkpoints but its newest, which is sound. Where several processes train
// together, the save has failed for all, and all try again if the chief has removed any.
bool Trainer::remove_older() {
  const std::string newest = runner_.stats().last_checkpoint;
  std::string removed;
  try {
    if (!newest.empty() && writes_for_all(runner_.strategy())) {
      const storage::Manifest manifest = storage::read_manifest(storage::any_disk(), newest);
      for (const std::string& path : storage::CheckpointFolder(storage::any_disk(), policy_.folder)
                                         .prune(1, {manifest.session, manifest.ancestors}))
        removed += " " + path;
    }
    if (!removed.empty())
      output_.say("older checkpoints of this run are removed to make room for the last one:" +
                  removed);
    return runner_.as_the_chief_says(!removed.empty());
  } catch (const Error& error) {
    output_.say(
        str("there is no room for the last checkpoint, and older ones could not be removed: ",
            error.what()));
    return false;
  }
}

// From a checkpoint, so that nothing is cut and gathered twice: of the best model, where the run
// goes back to it. A run that was interrupted is to end soon, and it will go on.
void Trainer::save_model() {
  if (options_.model_folder.empty() || outcome_.checkpoint.empty() || outcome_.interrupted != 0)
    return;
  const std::string& checkpoint = goes_back() ? outcome_.best->checkpoint : outcome_.checkpoint;
  try {
    const std::optional<float> above = threshold(goes_back() ? outcome_.best->step : loop_.ended());
    save_trained_model(job_, features_, network_, runner_.strategy(),
                       {checkpoint, options_.model_folder, above});
    outcome_.model = options_.model_folder;
  } catch (const Error& error) {
    add_failure(str("the checkpoint is saved, and the model for `cairn predict` could not be: ",
                    error.what()));
  }
}

// A threshold that is to be found is not known yet, and the model that is saved at the end would
// have another output: such a run is served from then on.
void Trainer::save_graph() {
  if (options_.graph_folder.empty()) return;
  const std::string folder = std::exchange(options_.graph_folder, {});
  try {
    if (!job_.model.threshold.fixed && !job_.model.threshold.rule.empty()) {
      if (writes_for_all(runner_.strategy())) system_disk().remove_tree(folder);
      return;
    }
    std::optional<float> above;
    if (job_.model.threshold.fixed) above = static_cast<float>(*job_.model.threshold.fixed);
    save_trained_model(job_, features_, network_, runner_.strategy(), {"", folder, above});
  } catch (const Error& error) {
    output_.say(str("warning: the run cannot be served before it ends: ", error.what()));
  }
}

// The one of the job, or the one that the last evaluation of the validation data found, if that was
// of the model of this step.
std::optional<float> Trainer::threshold(std::int64_t step) {
  const JobThreshold& wanted = job_.model.threshold;
  if (wanted.fixed) return static_cast<float>(*wanted.fixed);
  if (wanted.rule.empty()) return std::nullopt;
  const Evaluations& evaluated = evaluations_.front();
  const auto& found = evaluated.newest();
  const auto at = std::ranges::find(found, kThreshold, &Evaluations::Metrics::value_type::first);
  const bool of_this_model = at != found.end() && evaluated.newest_step() == step;
  if (of_this_model && std::isfinite(at->second)) return static_cast<float>(at->second);
  output_.say(str("warning: the model decides nothing, since model.threshold = \"", wanted.rule,
                  of_this_model
                      ? "\" is reached by no probability on the validation data"
                      : "\" was not looked for: the run was stopped before it was judged; "
                        "resume it, or give a number"));
  return std::nullopt;
}

void Trainer::add_failure(const std::string& what) {
  outcome_.failure += (outcome_.failure.empty() ? "" : "; and ") + what;
}

}  // namespace cairn::tools
