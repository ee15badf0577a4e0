// The part of the Trainer that serves [early_stopping], where the best model is saved when it is
// found and gone back to at the end, and [callbacks.reduce_lr_on_plateau].
//
// Every checkpoint holds the state of both rules, so that a resumed run decides as it would have
// without the pause. Training waits for evaluations, so weights and state are of one moment, except
// for an evaluation under way, which is made again.
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "model/writers/json_number.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "tools/job/parts/watched_metrics.h"
#include "tools/job/run/resume.h"
#include "tools/job/run/trainer.h"

namespace cairn::tools {

bool Trainer::goes_by_evaluations() const { return stopping_ || job_.callbacks.plateau.given; }

// Called for each evaluation of any data.
void Trainer::consider(const Evaluations& evaluated) {
  if (!stopping_ || &evaluated != &evaluations_.front()) return;
  const bool had_patience = !out_of_patience();
  const double value = value_of(evaluated.newest(), stopping_->name());
  const Monitor::Verdict verdict = stopping_->take(value, evaluated.newest_step());
  if (!stopping_->complaint().empty()) output_.say("warning: " + stopping_->complaint());
  if (verdict == Monitor::Verdict::kBetter) return save_best();
  if (!had_patience || !out_of_patience() || loop_.ended() >= total_steps_) return;
  outcome_.stopped_early = true;
  output_.say(out_of_patience_text());
}

std::string Trainer::out_of_patience_text() const {
  return str("early stopping: ", stopping_->in_vain(), " evaluations in a row found ",
             stopping_->name(), " no better than ", stopping_->best());
}

// By evaluations on the way, of the data that is evaluated there. Where several processes train
// together, all have the same metrics and lower their rates behind the same step.
void Trainer::lower_rates(const Evaluations& evaluated) {
  if (&evaluated != &evaluations_.front() || loop_.ended() >= total_steps_) return;
  const Scope open = runner_.strategy().scope();
  const std::string said = network_.learning_rates().consider(evaluated.newest());
  if (!said.empty()) output_.say(said);
}

// If the save fails, a line says so and the run goes on, as for other checkpoints on the way.
void Trainer::save_best() {
  CheckpointPolicy policy{options_.checkpoint_folder + "/best"};
  policy.keep_last = 1;
  policy.local_folder = job_.checkpoint.local_folder;
  policy.single_writer = options_.single_writer;
  try {
    outcome_.best = best_model(runner_.save(policy, metadata()));
  } catch (const Error& error) {
    output_.say(str("the best model so far could not be saved, the run goes on: ", error.what()));
  }
}

BestModel Trainer::best_model(const std::string& checkpoint) const {
  return {checkpoint, stopping_->best_at(), stopping_->name(), stopping_->best()};
}

// ---- across a restart ----

Json Trainer::watched() const {
  if (!goes_by_evaluations()) return nullptr;
  Json all{{"judged_step", evaluations_.front().newest_step()},
           {"early_stopping", stopping_ ? memory_json(*stopping_) : Json::object()},
           {"best_checkpoint", outcome_.best ? outcome_.best->checkpoint : ""},
           {"reduce_lr_on_plateau", network_.learning_rates().state()}};
  return all;
}

// New data is evaluated anew. A run that was killed may have found a better model behind the
// checkpoint, which took the place of the one that the checkpoint knows: the best that is there is
// then that one.
void Trainer::restore_watched(const Json& metadata) {
  if (!goes_by_evaluations() || (options_.new_data && !goes_on())) return;
  const auto found = metadata.is_object() ? metadata.find("watched") : metadata.end();
  if (found == metadata.end() || !found->is_object()) {
    output_.say(str("warning: ", options_.resume, " does not say what earlier evaluations found: ",
                    "early stopping and learning rates begin to count anew"));
    return;
  }
  if (stopping_) restore_memory(*stopping_, found->value("early_stopping", Json::object()));
  network_.learning_rates().restore_state(found->value("reduce_lr_on_plateau", Json()));
  evaluations_.front().go_on_behind(found->value("judged_step", std::int64_t{0}));
  find_best(found->value("best_checkpoint", ""));
  if (!out_of_patience()) return;
  outcome_.stopped_early = true;
  output_.say(out_of_patience_text() + ", before the run was resumed");
}

// The run before ended, at a step that is to be evaluated, before it was.
bool Trainer::lacks_evaluation(std::int64_t every) const {
  const bool resumed = goes_on() || (!options_.resume.empty() && !options_.new_data);
  return resumed && goes_by_evaluations() && every > 0 && first_step_ % every == 0 &&
         first_step_ > evaluations_.front().newest_step() && first_step_ < total_steps_;
}

void Trainer::find_best(const std::string& checkpoint) {
  if (checkpoint.empty() || !stopping_ || stopping_->best_at() == 0) return;
  BestModel best = best_model(checkpoint);
  if (!storage::any_disk().exists(checkpoint + "/" + storage::kManifestFile)) {
    const auto newest =
        storage::CheckpointFolder(storage::any_disk(), folder_of(checkpoint)).latest();
    if (!newest) {
      output_.say(str("warning: the best model so far, ", checkpoint,
                      ", is gone: the run goes back ", "to a better one alone"));
      return;
    }
    const Json known = saved_metadata(newest->path)["watched"]["early_stopping"];
    best.checkpoint = newest->path;
    best.step = known.at("best_step").get<std::int64_t>();
    best.value = cairn::number_of(known.at("best"));
  }
  outcome_.best = best;
}

// The last model may be better than all that were evaluated on the way. False: it was not asked.
bool Trainer::evaluate_last() {
  if (!stopping_ || out_of_patience()) return false;
  evaluations_.front().schedule(loop_.begun());
  while (evaluations_.front().under_way() && outcome_.interrupted == 0) {
    collect_evaluations();
    look_for_interrupt();
  }
  return true;
}

bool Trainer::goes_back() const {
  return outcome_.best && job_.early_stopping.restore_best && outcome_.best->step != loop_.begun();
}

// Behind the last save, so that both models are kept; what comes now is of the best one.
void Trainer::go_back_to_best() {
  if (!goes_back()) return;
  note_end();
  runner_.restore(outcome_.best->checkpoint, {.new_data = true});
  output_.say(str("went back to the best model, of step ", outcome_.best->step, ": ",
                  outcome_.best->checkpoint));
}

}  // namespace cairn::tools
