// RestoreStatus: what a restore has matched and what it has not, as the status that
// tf.train.Checkpoint.restore returns.
//
//   coordinator.restore(path).assert_consumed();  // every variable and slot must match
//   coordinator.restore(path).expect_partial();   // some may begin anew
//
// assert_consumed() is asked once all variables have been made.
//
// Variables that are made later take their rows when they are made, so that what is unmatched is
// only known once the model's functions are traced: ask then. Nothing is sent anywhere to answer.
//   Thread  any. The strategy outlives it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/restore/restore_plan.h"

namespace cairn {

class RestoreStatus {
 public:
  // `made` gives the program's variables so far, each time anew; `accept` is called once partial
  // restores are expected.
  RestoreStatus(std::shared_ptr<const RestorePlan> plan,
                std::function<std::vector<ProgramVariable>()> made, std::function<void()> accept);

  // Every variable made so far has rows and slots in the checkpoint, and everything in the
  // checkpoint is used.
  //   Errors  FailedPrecondition, which lists all that does not match, with the cure.
  RestoreStatus& assert_consumed();
  // Every variable made so far has rows and slots in the checkpoint, which may hold more.  Errors
  // the same.
  RestoreStatus& assert_existing_objects_matched();
  // Accepts that parts do not match: these begin at their initial values, without a warning, even
  // where a variable has another dtype or shape.
  RestoreStatus& expect_partial();
  RestoreDifferences differences() const { return plan_->compare(made_()); }
  // Says what comes from where, a line for each variable made so far.
  std::string plan() const { return plan_->text(made_()); }

 private:
  [[noreturn]] void refuse(const RestoreDifferences& found) const;
  std::shared_ptr<const RestorePlan> plan_;
  std::function<std::vector<ProgramVariable>()> made_;
  std::function<void()> accept_;
};

}  // namespace cairn
