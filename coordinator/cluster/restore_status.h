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
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/update_rule.h"
#include "core/graph/variable.h"
#include "core/rows/layout.h"
#include "core/tensor/tensor.h"

namespace cairn {

// A variable as a checkpoint has it. Its rule is the one that has slots; an assignment if none.
struct SavedVariable {
  TensorType type;
  UpdateRule rule;
};
using SavedVariables = std::map<std::string, SavedVariable>;

// A variable that the program has made.
struct ProgramVariable {
  std::shared_ptr<const VariableSpec> spec;
  UpdateRule rule;
};

struct RestoreOptions {
  // Datasets begin at their start, though the checkpoint has positions for them: it is new data
  // that the model goes on with.
  bool new_data = false;
  // Unless empty: the names of the datasets that go on where they stood. Others begin at their
  // start, such as data that a model is judged on.
  std::vector<std::string> positions_of = {};
};

// Each list in the order of names, ready to be shown.
struct RestoreDifferences {
  std::vector<std::string> not_saved;    // of the program: at their initial values
  std::vector<std::string> not_used;     // of the checkpoint: the program has made no such variable
  std::vector<std::string> other_type;   // dtype or shape differ: cannot be restored
  std::vector<std::string> other_slots;  // of the program, whose optimizer's slots are not in the
                                         // checkpoint: at initial values
  std::vector<std::string>
      unused_slots;  // of the checkpoint: the program's variable has no optimizer yet

  bool none() const;
  bool existing_match() const;  // all that the program has made comes from the checkpoint
  std::string text() const;     // a line for each kind that is not empty
};
std::vector<ProgramVariable> variables_of(const Layout& layout);
RestoreDifferences compare(const std::vector<ProgramVariable>& made, const SavedVariables& saved);
// FailedPrecondition naming every variable that has another dtype or shape in the checkpoint at
// `folder`.
void verify_types(const std::vector<ProgramVariable>& made, const SavedVariables& saved,
                  const std::string& folder);

class RestoreStatus {
 public:
  // `compare` is asked each time; `accept` is called once partial restores are expected.
  RestoreStatus(std::string folder, std::function<RestoreDifferences()> compare,
                std::function<void()> accept);

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
  RestoreDifferences differences() const { return compare_(); }

 private:
  [[noreturn]] void refuse(const RestoreDifferences& found) const;
  std::string folder_;
  std::function<RestoreDifferences()> compare_;
  std::function<void()> accept_;
};

}  // namespace cairn
