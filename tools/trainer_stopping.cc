// The part of the Trainer that serves [early_stopping], where the best model is saved when it is
// found and gone back to at the end, and [callbacks.reduce_lr_on_plateau].
#include "tools/trainer.h"

namespace cairn::tools {

// Called for each evaluation of any data.
void Trainer::consider(const Evaluations& judged) {
  if (!stopping().given() || &judged != &evaluations_.front()) return;
  const bool had_patience = !stopping().out_of_patience();
  if (stopping().better(judged.newest_step(), judged.newest())) return save_best();
  if (!had_patience || !stopping().out_of_patience() || done_ >= total_steps_) return;
  outcome_.stopped_early = true;
  line_.say(str("early stopping: ", job_.early_stopping.patience, " evaluations in a row found ",
                stopping().monitor(), " no better than ", stopping().best()));
}

// By evaluations on the way, of the data that is judged there. Where several processes train
// together, all have the same metrics and lower their rates behind the same step.
void Trainer::lower_rates(const Evaluations& judged) {
  if (&judged != &evaluations_.front() || done_ >= total_steps_) return;
  const Scope open = runner_.strategy().scope();
  const std::string said = network_.learning_rates().consider(judged.newest());
  if (!said.empty()) line_.say(said);
}

// One that fails is told, as other checkpoints on the way.
void Trainer::save_best() {
  CheckpointPolicy policy{options_.checkpoint_folder + "/best"};
  policy.keep_last = 1;
  try {
    outcome_.best = BestModel{runner_.save(policy, metadata()), stopping().best_step(),
                              stopping().monitor(), stopping().best()};
  } catch (const Error& error) {
    line_.say(str("the best model so far could not be saved, the run goes on: ", error.what()));
  }
}

// The last model may be better than all that were judged on the way. False: it was not asked.
bool Trainer::judge_last() {
  if (!stopping().given() || stopping().out_of_patience()) return false;
  evaluations_.front().schedule(scheduled_);
  while (evaluations_.front().under_way() && outcome_.interrupted == 0) {
    collect();
    look_for_interrupt();
  }
  return true;
}

bool Trainer::goes_back() const {
  return outcome_.best && job_.early_stopping.restore_best && outcome_.best->step != scheduled_;
}

// Behind the last save, so that both models are kept; what comes now is of the best one.
void Trainer::go_back_to_best() {
  if (!goes_back()) return;
  runner_.restore(outcome_.best->checkpoint, {.new_data = true});
  line_.say(str("went back to the best model, of step ", outcome_.best->step, ": ",
                outcome_.best->checkpoint));
}

}  // namespace cairn::tools
