#include "tools/job/run/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "core/base/json.h"
#include "core/graph/ops.h"
#include "storage/any_disk.h"
#include "storage/row_encoding.h"
#include "strategy/base/average_loss.h"
#include "tools/job/parts/job_warnings.h"
#include "tools/job/parts/watched_metrics.h"
#include "tools/job/run/interrupt.h"
#include "tools/job/run/resume.h"
#include "tools/job/spec/job_defaults.h"
#include "tools/job/spec/job_service.h"

namespace cairn::tools {
namespace {

std::int64_t steps_in(const Every& every, std::int64_t total) {
  if (every.share > 0)
    return std::max<std::int64_t>(1, std::llround(every.share * static_cast<double>(total)));
  return every.steps;
}

double seconds_since(TimePoint then) {
  return std::chrono::duration<double>(system_clock().now() - then).count();
}

}  // namespace

Trainer::Trainer(const Job& job, const FittedFeatures& features, StepRunner& runner,
                 TrainerOptions options)
    : job_(job),
      features_(features),
      runner_(runner),
      options_(std::move(options)),
      network_(job, features),
      loop_(runner, runner.steps_ahead()),
      stopping_(stopping_monitor(job)),
      output_(*options_.output) {
  total_steps_ = steps_of(job, features.examples);
  make_dataset(0);
  make_evaluations();
  make_function();
  options_.reporter->add("what `cairn status` shows of it", status_listener(runner_));
}

void Trainer::make_evaluations() {
  for (const EvaluationData& evaluated : eval_sources(job_, features_)) {
    evaluations_.emplace_back(job_, features_, runner_, network_, evaluated);
    if (evaluated.name == "test") outcome_.test_lines = evaluations_.back().lines();
  }
  if (evaluations_.empty())
    evaluations_.emplace_back(job_, features_, runner_, network_, std::nullopt);
}

// A batch is left out only where the data is made to go on, since that may mean to read all of it.
void Trainer::make_dataset(std::int64_t batches_taken) {
  const JobData& data = job_.data;
  data_ = runner_.training_data(
      [&](const InputContext& context) {
        Dataset mine = train_source(job_, features_, context);
        if (data.shuffle.value_or(0) > 0) mine = mine.shuffle(*data.shuffle, job_.model.seed);
        const std::int64_t shares = context.num_replicas_in_sync;
        if (data.batch % shares != 0)
          throw InvalidArgumentError(
              str("data.batch is ", data.batch, ", and each of the ", shares,
                  " lanes (cluster.workers times cluster.lanes) computes an ",
                  "equal share of it: choose a multiple of ", shares));
        mine = mine.repeat().batch(data.batch / shares, {.drop_remainder = true});
        if (data.service.given && features_.examples < data.batch / shares)
          throw InvalidArgumentError(str(
              "data.batch is ", data.batch, ", and the training data has ", features_.examples,
              " examples: under [data.service] the last batch of each file is dropped where it ",
              "is not full; choose a smaller batch"));
        if (data.service.given) return through_service(job_, mine);
        if (batches_taken > 0) mine = mine.skip(batches_taken);
        return mine.prefetch(2);
      },
      data.visitation == "exactly_once" ? Visitation::kExactlyOnce : Visitation::kByPolicy);
}

// A share's loss, scaled so that losses and gradients of all shares add up to the batch's. If a
// step has one share only, this is the mean over its examples.
Array Trainer::loss_of(const Batch& batch) const {
  Array losses = network_.losses(batch);
  if (!features_.weight.empty()) losses = losses * features_.weights_of(batch.features);
  if (runner_.shares() == 1) return mean(losses);
  return compute_average_loss(losses, {.global_batch_size = job_.data.batch});
}

void Trainer::make_function() {
  train_ = runner_.strategy().function(
      [this](Iterator input) {
        Array total;
        for (std::int64_t i = 0; i < job_.cluster.steps_per_closure; ++i) {
          Array loss = loss_of(input.get_next());
          network_.minimize(loss);
          total = total.defined() ? total + loss : loss;
        }
        return total / Array(static_cast<float>(job_.cluster.steps_per_closure));
      },
      "train");
}

std::string Trainer::metadata() const {
  Json all = metadata_of(job_, features_, total_steps_, data_began_);
  all["watched"] = watched();
  return json_text(all);
}

TrainingOutcome Trainer::run() {
  begin();
  try {
    train();
  } catch (const Error&) {
    raise_with_checkpoint();
  }
  show(true);
  tell(true);
  save_checkpoint();
  if (!outcome_.ended_early() && evaluations_.front().have_data()) {
    evaluate_at_end();
    if (const std::string worse = evaluations_.front().worse_than_best(); !worse.empty())
      output_.say(worse);
  }
  save_model();
  outcome_.metrics = evaluations_.back().newest();
  const Evaluations& first = evaluations_.front();
  if (first.name() == kValidation) outcome_.validation = first.newest();
  outcome_.stats = runner_.stats();
  outcome_.replicas = runner_.strategy().num_replicas_in_sync();
  outcome_.collectives = runner_.all_collectives();
  return outcome_;
}

namespace {

storage::RowEncoding encoding_of(const JobCheckpoint& job) {
  return {storage::parse_row_form(job.rows, "checkpoint.rows"),
          storage::parse_slot_form(job.slots, "checkpoint.slots"),
          storage::parse_compression(job.compression, "checkpoint.compression"), job.encode};
}

}  // namespace

void Trainer::begin() {
  const std::int64_t own_steps = total_steps_;
  if (goes_on())
    go_on_by_journal();
  else if (!options_.resume.empty())
    resume();
  else if (!options_.warm_start.empty())
    warm_start();
  note_job();
  policy_ = {options_.checkpoint_folder, steps_in(job_.checkpoint.every, own_steps),
             job_.checkpoint.every.seconds, job_.checkpoint.keep_last, options_.folder_lock};
  policy_.local_folder = job_.checkpoint.local_folder;
  policy_.full_every = job_.checkpoint.full_every;
  policy_.consolidate_after = job_.checkpoint.consolidate_after;
  policy_.keep_every = job_.checkpoint.keep_every;
  if (policy_.consolidate_after > 0 && !storage::any_disk().has_links(policy_.folder))
    throw InvalidArgumentError(str("checkpoint.consolidate_after is ", policy_.consolidate_after,
                                   ", and ", policy_.folder,
                                   " is in a bucket, where deltas stay as they are: remove it"));
  policy_.encoding = encoding_of(job_.checkpoint);
  policy_.single_writer = options_.single_writer;
  runner_.stop_requested();  // `cairn stop` is obeyed from the first moment
  // if never by itself, then when it is asked to
  runner_.save_automatically(policy_, metadata());
  options_.reporter->start(first_step_);
  const std::int64_t every = steps_in(job_.evaluation.every, own_steps);
  evaluations_.front().begin(first_step_, every);
  if (lacks_evaluation(every)) evaluations_.front().schedule(first_step_);
}

// A job that stops early waits for its evaluations: what is saved as the best model is then what
// was evaluated, and no step is begun that should not be taken. So does one whose learning rate
// falls, of which no step is to be taken with the old one.
void Trainer::train() {
  output_.began();
  started_ = system_clock().now();
  loop_.run(
      total_steps_,
      {.begin = [this](std::int64_t) { return begin_call(); },
       .take =
           [this](std::int64_t steps, const std::vector<Tensor>& values) {
             take_loss(steps, values.front().item<float>());
           },
       .may_begin = [this] { return !(goes_by_evaluations() && evaluations_.front().under_way()); },
       .is_stopping = [this] { return out_of_patience(); },
       .turn = [this] { turn(); },
       .obeys_stop = true});
  outcome_.stopped = runner_.stop_requested();
  look_for_interrupt();
  outcome_.seconds = seconds_since(started_);
  if (outcome_.ended_early()) abandon_the_rest();
  outcome_.steps = loop_.ended();
  outcome_.examples = (outcome_.steps - first_step_) * job_.data.batch;
  outcome_.examples_per_s = static_cast<double>(outcome_.examples) / outcome_.seconds;
}

StepLoop::Call Trainer::begin_call() {
  const std::int64_t steps = job_.cluster.steps_per_closure, begun = loop_.begun() + steps;
  StepLoop::Call call{steps, runner_.schedule_step(train_, data_)};
  compare_with_restored();
  save_graph();
  if (begun < total_steps_) evaluations_.front().schedule_if_due(begun);
  return call;
}

void Trainer::take_loss(std::int64_t steps, float loss) {
  const bool first = loop_.ended() - steps == first_step_;
  outcome_.loss = first ? loss : 0.98 * outcome_.loss + 0.02 * loss;
}

void Trainer::turn() {
  collect_evaluations();
  report_progress();
  if (output_.due()) show(false);
  if (options_.reporter->due()) tell(false);
  if (!out_of_patience()) evaluations_.front().schedule_if_time(loop_.begun());
}

void Trainer::look_for_interrupt() {
  if (outcome_.interrupted != 0 || (outcome_.interrupted = runner_.interrupted()) == 0) return;
  const unsigned limit = Interrupts::allow_for(runner_.stats().last_checkpoint_seconds);
  output_.say(str("interrupted by SIG", ::sigabbrev_np(outcome_.interrupted), " at step ",
                  loop_.ended(), ": the run is saved and ends",
                  limit > 0 ? str(" within ", limit, " s") : "", "; once more ends it at once"));
}

void Trainer::evaluate_at_end() {
  try {
    const auto under_way = [](const Evaluations& each) { return each.under_way(); };
    raising_the_cause(runner_, [&] {
      const bool evaluated = evaluate_last();
      go_back_to_best();
      const std::int64_t step = goes_back() ? outcome_.best->step : loop_.begun();
      for (Evaluations& each : evaluations_)
        if (!evaluated || goes_back() || &each != &evaluations_.front()) each.schedule(step);
      while (std::ranges::any_of(evaluations_, under_way) && outcome_.interrupted == 0) {
        collect_evaluations();
        report_progress();
        look_for_interrupt();
      }
    });
  } catch (const Error& error) {
    add_failure(str("the evaluation at the end failed: ", error.what()));
  }
}

// Names what the run can be taken up from again.
void Trainer::raise_with_checkpoint() const {
  ErrorParts parts = error_parts(std::current_exception());
  const std::string saved = runner_.stats().last_checkpoint;
  if (!saved.empty())
    parts.message += str("; the newest checkpoint is ", saved,
                         ": mend the cause, then go on with --resume ", saved);
  else  // the checkpoint that it was resumed from may be the very cause
    parts.message += "; no checkpoint had been made yet";
  throw_error(parts);
}

void Trainer::report_failed_saves(const EngineStats& stats) {
  if (stats.checkpoints_failed == failed_saves_told_) return;
  failed_saves_told_ = stats.checkpoints_failed;
  output_.say(
      str("a checkpoint failed, the run goes on and tries again: ", stats.checkpoint_error));
}

void Trainer::report_progress() const {
  if (options_.on_progress)
    options_.on_progress(static_cast<double>(loop_.ended()) / static_cast<double>(total_steps_));
}

// Closures that run are finished and counted; those that only wait never begin.
void Trainer::abandon_the_rest() {
  for (Evaluations& each : evaluations_) each.abandon();
  try {
    loop_.abandon();
  } catch (const Error& error) {  // it must not cost what was trained
    output_.say(str("what was still running did not end well: ", error.what()));
  }
  loop_.go_on_behind(std::min(total_steps_, runner_.stats().global_step));
}

// Waits a little for one if no step's result is what to wait for.
void Trainer::collect_evaluations() {
  bool wait = !loop_.under_way();
  for (Evaluations& each : evaluations_) {
    each.collect(wait, [&](const std::string& text) {
      output_.say(text);
      options_.reporter->evaluation(each.newest_step(), each.name(), each.newest());
      consider(each);
      lower_rates(each);
      if (goes_by_evaluations()) runner_.set_save_metadata(metadata());
      note_watched();
    });
    wait = wait && !each.under_way();
  }
}

void Trainer::tell(bool at_end) {
  const EngineStats stats = runner_.stats();
  const std::int64_t taken = loop_.ended() - first_step_;
  RunHistory::Step step;
  step.step = loop_.ended();
  step.seconds = at_end ? outcome_.seconds : seconds_since(started_);
  step.loss = taken > 0 ? outcome_.loss : std::nan("");
  step.examples = taken * job_.data.batch;
  if (stats.ps > 0) step.staleness = stats.staleness_mean;
  LearningRates::Values rates;
  if (taken > 0) {
    const Scope open = runner_.strategy().scope();
    rates = network_.learning_rates().at(loop_.ended());
  }
  options_.reporter->step(step, std::move(rates));
}

void Trainer::show(bool at_end) {
  EngineStats stats = runner_.stats();
  Interrupts::allow_for(stats.last_checkpoint_seconds);  // a signal may come at any time
  Progress progress{.step = loop_.ended(),
                    .steps = total_steps_,
                    .loss = outcome_.loss,
                    .staleness = stats.staleness_mean};
  double seconds = at_end ? outcome_.seconds : seconds_since(started_);
  double steps_per_s = static_cast<double>(loop_.ended() - first_step_) / std::max(seconds, 1e-9);
  progress.examples_per_s = steps_per_s * static_cast<double>(job_.data.batch);
  const std::vector<CollectiveCounts> collectives = runner_.collectives();
  for (const CollectiveCounts& each : collectives) {
    const double all = std::max(seconds, 1e-9) * static_cast<double>(collectives.size());
    progress.held += each.held_seconds / all;
    progress.waited += each.waited_seconds / all;
  }
  if (!evaluations_.front().newest().empty())
    std::tie(progress.metric, progress.metric_value) = evaluations_.front().newest().front();
  progress.workers_up = stats.workers_ready;
  progress.workers = stats.workers;
  progress.ps_up = stats.ps_ready;
  progress.ps = stats.ps;
  if (stats.ps == 0)
    progress.replicas = static_cast<unsigned>(runner_.strategy().num_replicas_in_sync());
  if (!at_end && steps_per_s > 0)
    progress.seconds_left = static_cast<double>(total_steps_ - loop_.ended()) / steps_per_s;
  if (options_.gpus) {
    const std::vector<GpuSeen> gpus = options_.gpus();
    outcome_.gpus.add(gpus);
    progress.gpus = gpus_text(gpus);
  }
  output_.show(progress);
  report_failed_saves(stats);
}

}  // namespace cairn::tools
