// The part of the Trainer with which a run begins: from a checkpoint, with the rows of another one,
// or by its journal (EngineOptions::journal), which tells the coordinator that goes on with the run
// what it has to know of the job.
//
// By a journal, rows, step and data stand where they stood. The data tell how far the run is: other
// things than steps of training count in the cluster's step as well, such as a learning rate that
// is set.
// An evaluation that was under way when the earlier coordinator died is lost with it, unless
// training waits for evaluations: then the one of this step is made again.
#include <algorithm>

#include "core/base/error.h"
#include "tools/job/run/resume.h"
#include "tools/job/run/trainer.h"
#include "tools/job/run/warm_start.h"
#include "tools/job/spec/job_service.h"

namespace cairn::tools {

void Trainer::resume() {
  const bool positions = !options_.new_data && !job_.data.service.given;
  restored_ = runner_.restore(options_.resume, {.new_data = !positions, .positions_of = {"train"}});
  if (options_.partial) restored_->expect_partial();
  const std::int64_t step = runner_.stats().global_step;
  data_began_ = options_.new_data ? step : options_.data_began;
  count_on_from(step);
  if (!runner_.keeps_positions()) make_dataset(step - data_began_);
  output_.say(str("resumed from ", options_.resume, " at step ", first_step_,
                  options_.new_data ? ", with new data" : ""));
  restore_watched(saved_metadata(options_.resume));
  if (!positions && !options_.new_data)
    output_.say(str(
        "warning: a data service keeps no positions: the run goes on with what its job \"",
        job_.data.service.job, "\" has left, and if that is new, at the beginning of the data"));
  if (!runner_.makes_variables(train_, data_)) return;
  compare_with_restored();
}

void Trainer::count_on_from(std::int64_t step) {
  total_steps_ += data_began_;
  if (step >= total_steps_)
    output_.say(
        str("the job ends at step ", total_steps_,
            goes_on() ? ", and the run stands at step " : ", and the checkpoint is of step ", step,
            ": nothing is left to train; more --epochs or --steps go on"));
  total_steps_ = std::max(step, total_steps_);
  first_step_ = step;
  loop_.go_on_behind(step);
}

void Trainer::warm_start() {
  output_.say("warm start from " + options_.warm_start);
  restored_ = runner_.restore(options_.warm_start,
                              warm_start_options(job_, features_, options_.warm_start));
  if (runner_.makes_variables(train_, data_)) compare_with_restored();
}

// Variables are made when the step is traced, in the context that it runs in: only then is known
// what the checkpoint lacks, or holds beside them.
void Trainer::compare_with_restored() {
  if (!restored_) return;
  if (options_.resume.empty()) output_.say(restored_->plan());
  if (!options_.partial) restored_->assert_consumed();
  if (const RestoreDifferences rest = restored_->differences(); !rest.none())
    output_.say(str("not taken over, variables", rest.text()));
  restored_.reset();
}

// ---- by the run's journal ----

// Where the run had been trained to its end, and then gone back to its best model, its last
// checkpoint is what the rows were.
void Trainer::go_on_by_journal() {
  const NotedRun& run = *options_.goes_on;
  const std::int64_t pipelines = runner_.pipelines_of(data_);
  if (pipelines != run.pipelines)
    throw FailedPreconditionError(str("by ", run.where, " the training data was dealt out to ",
                                      run.pipelines, " lanes, and here there are ", pipelines,
                                      ": start as many workers and lanes as the run had"));
  data_began_ = run.metadata.value("data_began", std::int64_t{0});
  if (!run.end_checkpoint.empty())
    restored_ = runner_.restore(run.end_checkpoint, {.positions_of = {"train"}});
  count_on_from(runner_.steps_of(data_) - run.began);
  output_.say(str("goes on at step ", first_step_, " with the run of ", run.where));
  restore_watched({{"watched", run.watched}});
  if (runner_.makes_variables(train_, data_)) compare_with_restored();
}

void Trainer::note_job() {
  if (runner_.journal_folder().empty()) return;
  note_watched();
  NotedRun run;
  run.metadata = metadata_of(job_, features_, total_steps_, data_began_);
  run.began = goes_on() ? options_.goes_on->began : runner_.steps_of(data_) - first_step_;
  run.pipelines = runner_.pipelines_of(data_);
  run.checkpoints = options_.checkpoint_folder;
  runner_.note(NotedRun::kJob, run.job_text());
}

void Trainer::note_watched() {
  if (runner_.journal_folder().empty() || !goes_by_evaluations()) return;
  runner_.note(NotedRun::kWatched, json_text(watched()));
}

void Trainer::note_end() {
  if (!runner_.journal_folder().empty() && !outcome_.checkpoint.empty())
    runner_.note(NotedRun::kEnd, json_text(Json(outcome_.checkpoint)));
}

}  // namespace cairn::tools
