// ProgressBook: how far the run has come, and where in its data. What a checkpoint saves beside
// rows.
//
// Steps are given to closures in the order in which they first leave the queue, and counted as the
// closures are committed: between the two lie those that run. Elements of a dataset are given, and
// committed, in the same way (pipelines.h).
//   Thread  the engine's. Pure: it waits for nothing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/progress/pipelines.h"

namespace cairn {

class ProgressBook {
 public:
  // ---- steps ----
  std::int64_t global_step() const { return global_step_; }  // committed
  // The step of a closure that counts `steps`. It keeps the step, however often it is run again.
  std::int64_t give_step(std::int64_t steps) {
    return std::exchange(next_step_, next_step_ + steps);
  }
  void commit_steps(std::int64_t steps) { global_step_ += steps; }
  // Closures had these steps that were not given here.
  void adopt_steps(std::int64_t steps) {
    global_step_ += steps;
    next_step_ = std::max(next_step_ + steps, global_step_);
  }

  // ---- saving by steps ----
  // A save is due whenever `every` more steps are committed, from now on; 0: never.
  void save_every(std::int64_t every);
  bool save_due() const { return save_every_ > 0 && global_step_ - saved_at_step_ >= save_every_; }
  // The save that is due begins. Those that follow are due at multiples of `every`, however late
  // this one is.
  void save_begins() { saved_at_step_ = global_step_ / save_every_ * save_every_; }

  // ---- datasets ----
  // A pipeline for each description. They begin where a restored run left them, if it knew them.
  //   Errors  InvalidArgument, as verify(), if the restored position is in another dataset. Then
  //           nothing has changed.
  std::shared_ptr<const PerWorkerDataset> add_dataset(
      std::string name, std::vector<std::vector<std::byte>> descriptions, ElementSpec spec,
      bool shared);
  // The next dataset of this name begins at its beginning, whatever is known of an earlier one.
  void begin_anew(const std::string& name);
  // How many of its elements have been committed, from its beginning on.
  std::uint64_t elements_committed(const PerWorkerDataset& dataset) const;
  // Where a closure on lane number `lane` takes its elements: the lane's own pipeline or, once that
  // has ended, the next one that has not; the lane's own, if all have.
  std::uint64_t source_of(const PerWorkerDataset& dataset, std::size_t lane) const;
  // Gives the closure the elements that it does not have, for a run on that lane.
  void take_elements(Closure& closure, std::size_t lane);
  // A lane found the end of this pipeline. The closure is without what it was to take there.
  void data_ended(Closure& closure, std::uint64_t pipeline);
  // The dataset that has no elements for the closure, all its pipelines having ended, or null.
  const PerWorkerDataset* out_of_data(const Closure& closure) const;
  // Are there elements of it that were taken and not committed?
  bool any_open(const PerWorkerDataset& dataset) const;
  // The known state from which a take's first element is reached by the least skipping.
  std::pair<std::uint64_t, const std::vector<std::byte>*> base(const TakeRecord& take) const {
    return pipelines_[take.pipeline].base(take.ordinal);
  }
  void commit_elements(const TakeRecord& take, std::uint64_t state_ordinal,
                       std::vector<std::byte> state) {
    pipelines_[take.pipeline].commit(take, state_ordinal, std::move(state));
  }
  // Commits the elements of a closure that failed or was cancelled: they are not read again.
  void spend_elements(const Closure& closure);
  // A lane says how many rows of this pipeline it has skipped so far, over all runs of the
  // pipeline's life. How many of them are news.
  std::uint64_t count_skipped(std::uint64_t pipeline, std::uint64_t skipped);
  // By their numbers.
  const std::vector<Pipeline>& pipelines() const { return pipelines_; }
  // As the user knows the pipeline; its number, where there is none of that number.
  std::string pipeline_name(std::uint64_t pipeline) const;

  // ---- checkpoints ----
  std::vector<PipelinePosition> positions() const;
  // Goes on where an earlier coordinator stood, whose datasets have their numbers until
  // hand_over().
  void resume(std::int64_t global_step, std::vector<Pipeline> pipelines,
              std::vector<std::shared_ptr<const PerWorkerDataset>> datasets);
  // An open closure of that coordinator has this step and these elements.
  //   Errors  DataLoss: elements that another one has.
  void take_again(const Closure& closure);
  // The earlier coordinator's closures have ended. The program makes its datasets again, and they
  // go on where those of the same names stood; those that had not been made, at their places in
  // `restored`, the checkpoint that the earlier program had restored.
  void hand_over(const std::vector<PipelinePosition>& restored);
  // Whether each dataset made so far is the one that these are positions in.
  //   Errors  InvalidArgument, naming the dataset: it is not.
  //   Cost  one description of each dataset is read.
  void verify(const std::vector<PipelinePosition>& positions) const;
  // The run goes on from `global_step`. Each dataset made so far is given its positions, those made
  // later ask again; a dataset without positions stays where it is. A position belongs to the
  // pipeline of its name, and means something only where the data is dealt out to as many pipelines
  // as when it was saved: else the dataset begins anew, with a warning.
  void restore(std::int64_t global_step, std::vector<PipelinePosition> positions);

 private:
  void restore_positions();

  std::int64_t global_step_ = 0;
  std::int64_t next_step_ = 0;
  std::int64_t save_every_ = 0;
  std::int64_t saved_at_step_ = 0;
  std::vector<Pipeline> pipelines_;
  std::size_t handed_over_ = 0;         // so many of them are an earlier coordinator's
  std::vector<std::uint64_t> skipped_;  // rows, by pipeline
  std::vector<std::shared_ptr<const PerWorkerDataset>> datasets_;
  std::vector<PipelinePosition> restored_;
  std::set<std::string> looked_up_;  // datasets that have their positions, or had none to have
};

}  // namespace cairn
