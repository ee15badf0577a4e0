// The part of the Trainer that saves at the end: the last checkpoint, and the model on disk.
#include "core/base/error.h"
#include "tools/trained_model.h"
#include "tools/trainer.h"

namespace cairn::tools {

// If nothing was left to train, no step has made the variables: the checkpoint that was restored is
// the model.
void Trainer::save_checkpoint() {
  if (restored_) {
    outcome_.checkpoint = options_.resume;
    return;
  }
  try {
    outcome_.checkpoint = runner_.save(policy_, metadata());
  } catch (const Error& error) {
    add_failure(str("the model could not be saved at the end: ", error.what()));
  }
}

// From a checkpoint, so that nothing is cut and gathered twice: of the best model, where the run
// goes back to it. A run that was interrupted is to end soon, and it will go on.
void Trainer::save_model() {
  if (options_.model_folder.empty() || outcome_.checkpoint.empty() || outcome_.interrupted != 0)
    return;
  const std::string& checkpoint = goes_back() ? outcome_.best->checkpoint : outcome_.checkpoint;
  try {
    save_trained_model(job_, features_, network_, runner_.strategy(),
                       {checkpoint, options_.model_folder});
    outcome_.model = options_.model_folder;
  } catch (const Error& error) {
    add_failure(str("the checkpoint is saved, and the model for `cairn predict` could not be: ",
                    error.what()));
  }
}

void Trainer::add_failure(const std::string& what) {
  outcome_.failure += (outcome_.failure.empty() ? "" : "; and ") + what;
}

}  // namespace cairn::tools
