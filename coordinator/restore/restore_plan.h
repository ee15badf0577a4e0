// RestorePlan: which variable of a program takes which rows of a checkpoint. Every place that takes
// rows out of a checkpoint asks it: a restore, a variable that is made later, a ps that is rebuilt.
//
// It is a value, made of the checkpoint's variables and the options, so that all of them come to
// the same answer at any time. Names are resolved at once; types are compared with the program's
// variables as these are made.
//   Thread  any; it does not change.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/restore/restore_options.h"
#include "core/graph/update_rule.h"
#include "core/graph/variable.h"
#include "core/rows/layout.h"
#include "core/rows/row_move.h"
#include "core/tensor/tensor.h"

namespace cairn {

// A variable as a checkpoint has it. Its rule is the one that has slots; an assignment if none.
struct SavedVariable {
  TensorType type;
  UpdateRule rule;
  bool hashed = false;
  // It was saved without its slots (CheckpointPolicy::encoding): they begin anew.
  bool slots_dropped = false;
};
using SavedVariables = std::map<std::string, SavedVariable>;

// A variable that the program has made.
struct ProgramVariable {
  std::shared_ptr<const VariableSpec> spec;
  UpdateRule rule;
};
std::vector<ProgramVariable> variables_of(const Layout& layout);

// Each list in the order of names, ready to be shown.
struct RestoreDifferences {
  std::vector<std::string> not_saved;    // of the program: at their initial values
  std::vector<std::string> not_used;     // of the checkpoint: the program has made no such variable
  std::vector<std::string> other_type;   // dtype or shape differ: cannot be restored
  std::vector<std::string> other_slots;  // of the program, whose optimizer's slots are not in the
                                         // checkpoint: at initial values
  std::vector<std::string>
      unused_slots;  // of the checkpoint: the program's variable has no optimizer yet
  // of the checkpoint: RestoreOptions::rename names a variable that the program has not made
  std::vector<std::string> renamed_onto_nothing = {};

  bool none() const;
  bool existing_match() const;  // all that the program has made comes from the checkpoint
  std::string text() const;     // a line for each kind that is not empty
};

class RestorePlan {
 public:
  RestorePlan() = default;
  // Each variable goes into the one of its name.
  explicit RestorePlan(SavedVariables saved, std::string folder = "");
  //   Errors  InvalidArgument, which lists all that is wrong with the options: a pattern that is
  //           none or matches no variable of the checkpoint, two variables that would go into one,
  //           a variable that two renames match, rows for a variable that takes none.
  RestorePlan(SavedVariables saved, std::string folder, RestoreOptions options);

  const SavedVariables& saved() const { return saved_; }
  const std::string& folder() const { return folder_; }
  bool chooses() const { return options_.chooses(); }
  // The program's names -> the checkpoint's.
  const std::map<std::string, std::string>& sources() const { return sources_; }

  // Whether the checkpoint, or what is taken of it, has anything for the variable.
  bool has(const std::string& variable) const { return sources_.contains(variable); }
  // The options say that the variable begins anew.
  bool leaves_out(const std::string& variable) const;
  // Rows of the checkpoint that go into the variable; none: it begins anew.
  //   Errors  FailedPrecondition: they do not fit it.
  std::optional<RowMove> move_of(const VariableSpec& variable) const;
  bool fits(const VariableSpec& variable) const;  // move_of() has no error
  // Its rows are those of the checkpoint's variable of its name and shape, as they are.
  bool as_saved(const VariableSpec& variable) const;
  // The variable's rows are those of a hashed one of more rows: their numbers are known only once
  // they are read, and may not fit.
  bool may_not_fit(const VariableSpec& variable) const;

  // FailedPrecondition naming every variable that its rows do not fit.
  void verify(const std::vector<ProgramVariable>& made) const;
  RestoreDifferences compare(const std::vector<ProgramVariable>& made) const;
  // The plan in words: a line for each variable of the program, and for each of the checkpoint that
  // is left out.
  std::string text(const std::vector<ProgramVariable>& made) const;
  // The lines of these variables alone, each behind a line break.
  std::string lines(const std::vector<ProgramVariable>& made) const;
  // There is something in it that who restores has not expected, or has asked for.
  bool unusual(const std::vector<ProgramVariable>& made) const;

 private:
  void resolve();
  std::set<std::string> chosen_names(std::vector<std::string>& wrong) const;
  std::string target_of(const std::string& saved, std::vector<std::string>& wrong) const;
  std::string row_trouble(const std::string& variable, const RowNumbers& numbers) const;
  bool takes_slots(const SavedVariable& saved) const {
    return options_.slots && !saved.slots_dropped;
  }
  std::string trouble_of(const VariableSpec& variable) const;
  std::string numbers_trouble(const VariableSpec& variable, const SavedVariable& saved,
                              const RowNumbers& numbers) const;
  std::string line_of(const ProgramVariable& variable) const;

  SavedVariables saved_;
  std::string folder_;
  RestoreOptions options_;
  std::map<std::string, std::string> sources_;   // the program's name -> the checkpoint's
  std::map<std::string, std::string> left_out_;  // the same, of what the options leave out
};

}  // namespace cairn
