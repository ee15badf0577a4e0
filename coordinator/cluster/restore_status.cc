#include "coordinator/cluster/restore_status.h"

#include <utility>

#include "core/base/error.h"

namespace cairn {

RestoreStatus::RestoreStatus(std::shared_ptr<const RestorePlan> plan,
                             std::function<std::vector<ProgramVariable>()> made,
                             std::function<void()> accept)
    : plan_(std::move(plan)), made_(std::move(made)), accept_(std::move(accept)) {}

// Compared anew at each call: between two of them the program may have made the variables that were
// missing.
RestoreStatus& RestoreStatus::assert_consumed() {
  if (const RestoreDifferences found = differences(); !found.none()) refuse(found);
  return *this;
}

RestoreStatus& RestoreStatus::assert_existing_objects_matched() {
  if (const RestoreDifferences found = differences(); !found.existing_match()) refuse(found);
  return *this;
}

RestoreStatus& RestoreStatus::expect_partial() {
  accept_();
  return *this;
}

void RestoreStatus::refuse(const RestoreDifferences& found) const {
  throw FailedPreconditionError(str(
      "the checkpoint ", plan_->folder(), " and the model do not match; variables", found.text(),
      "\nRestore it with the model that saved it; where the rest is to begin anew, say so:"
      " RestoreOptions::exclude, expect_partial(), or --partial"));
}

}  // namespace cairn
