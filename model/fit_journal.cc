// The part of FitLoop that writes its place into the run's journal (EngineOptions::journal), and
// goes on from there in a process that is started after the first one has died.
//
// A place is noted before the first step of each epoch, and within an epoch once a second. So all
// steps that have ended since are of the epoch that the note names: how many they are is told by
// the data, whose position is exact. What these steps returned went with the process: the logs of
// the epoch are those of the other steps, and callbacks are not called for them.
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/disk/disk.h"
#include "model/callback_states.h"
#include "model/fit_loop.h"

namespace cairn {
namespace {

constexpr Duration kNoteEvery = std::chrono::seconds(1);
// A note that takes long, as the tensors of callbacks may, is made so many times more seldom.
constexpr int kPauseForNote = 20;

}  // namespace

// False: this fit() has returned in an earlier process, and is not run again.
bool FitLoop::go_on_by_journal() {
  if (runner_.journal_folder().empty()) {
    make_data();
    return true;
  }
  const int number = runner_.count_fit();
  journal_.name = str("fit/", number);
  journal_.folder = str(runner_.journal_folder(), "/fit-", number);
  const std::optional<ResumedRun> run = runner_.resumed();
  const bool known = run && run->notes.contains(journal_.name);
  if (!known) {
    runner_.begin_data_anew();
    make_data();
    return true;
  }
  const std::string where = "the journal in " + runner_.journal_folder();
  TrainingPlace noted = TrainingPlace::parse(run->notes.at(journal_.name), where);
  if (noted.ended && (noted.epoch >= options_.epochs || noted.stopping)) {
    log_info("call ", number, " of fit() had ended before this process began: its history is ",
             "returned");
    make_variables_only();
    place_ = std::move(noted);
    return false;
  }
  make_data();
  place_.verify(noted, where);
  noted.features = std::move(place_.features);
  noted.data = std::move(place_.data);
  place_ = std::move(noted);
  place_.ended = false;
  journal_.goes_on = true;
  stopping_ = stopping_ || place_.stopping;
  sums_.restore(place_.sums);
  count_taken(runner_.steps_of(data_) - place_.began - place_.batches);
  return true;
}

// Variables are made in the order in which the earlier process made them, and the data of its
// training keeps its position for the fit() that goes on with it.
void FitLoop::make_variables_only() {
  const Dataset batches = input_.of_pipeline ? input_.of_pipeline({}) : input_.batches;
  data_ = runner_.test_data(batches, journal_.name);
  model_.build_beside(data_->element_spec(), input_.weights);
  runner_.makes_variables(step_of(functions_.options().steps_per_execution), data_);
}

// So many steps have ended since the place was noted.
void FitLoop::count_taken(std::int64_t taken) {
  const std::int64_t pipelines = runner_.pipelines_of(data_);
  if (pipelines != place_.pipelines)
    throw FailedPreconditionError(str("fit: by the journal in ", runner_.journal_folder(),
                                      " the data was dealt out to ", place_.pipelines,
                                      " lanes, and here there are ", pipelines,
                                      ": start as many workers and lanes as the run had"));
  const std::int64_t left = steps_per_epoch_ - place_.step;
  if (taken < 0 || taken > left)
    throw FailedPreconditionError(
        str("fit: the journal in ", runner_.journal_folder(), " tells of ", taken,
            " steps since step ", place_.step, " of epoch ", place_.epoch, ", which has ",
            steps_per_epoch_, ": this program trains otherwise than the one that wrote it; run ",
            "that one, or give another folder"));
  place_.step += taken;
  place_.batches += taken;
  log_info("fit goes on at step ", place_.step, " of ", steps_per_epoch_, " of epoch ",
           place_.epoch, ", as ", journal_.name, " of the journal tells");
  if (taken > 0)
    log_warning("fit: what ", taken, " steps of epoch ", place_.epoch, " returned went with the ",
                "earlier process: their updates count, the epoch's logs are those of its other ",
                "steps, and callbacks are not called for them");
}

void FitLoop::begin_noting() {
  if (journal_.name.empty() || journal_.goes_on) return;
  place_.began = runner_.steps_of(data_) - place_.batches;
  place_.pipelines = runner_.pipelines_of(data_);
}

// `told`: callbacks know that the epoch has begun. The file of their tensors is named anew each
// time, so that the one of the note before is whole until this one is kept.
void FitLoop::note_place(bool told) {
  if (journal_.name.empty()) return;
  const TimePoint before = system_clock().now();
  ++place_.notes;
  place_.told = told;
  place_.sums = sums_.sums();
  place_.stopping = stopping_;
  place_.callbacks =
      save_states(options_.callbacks, journal_.folder, place_.notes, StateFile::kWritten);
  runner_.note(journal_.name, place_.to_json());
  if (place_.callbacks.contains("file"))
    remove_other_state_files(journal_.folder, place_.callbacks);
  const TimePoint after = system_clock().now();
  journal_.due = after + std::max<Duration>(kNoteEvery, (after - before) * kPauseForNote);
}

void FitLoop::note_if_time() {
  if (!journal_.name.empty() && system_clock().now() >= journal_.due) note_place(true);
}

// One that was interrupted is gone on with.
void FitLoop::note_end() {
  if (journal_.name.empty() || !ended_) return;
  place_.ended = true;
  place_.callbacks = Json();
  runner_.note(journal_.name, place_.to_json());
  system_disk().remove_tree(journal_.folder);
}

}  // namespace cairn
