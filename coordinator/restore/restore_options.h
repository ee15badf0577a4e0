// RestoreOptions: which of a checkpoint's variables a restore takes, and into which of the
// program's. By default each goes into the one of its name.
//
//   strategy.restore(path, {.include = {"embedding/*"}, .slots = false});
//   strategy.restore(path, {.exclude = {"head/*"}, .rename = {{"tower/*", "user_tower/*"}}});
//   strategy.restore(path, {.rows = {{"city", std::make_shared<RowNumbers>(
//                                                 rows_by_value({.old_vocab = old_cities,
//                                                                .new_vocab = cities}))}}});
//
// The plan that comes of it (restore_plan.h) is logged before anything is restored.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/rows/row_move.h"
#include "data/feature/feature_column.h"

namespace cairn {

struct RestoreOptions {
  // Datasets begin at their start, though the checkpoint has positions for them: it is new data
  // that the model goes on with.
  bool new_data = false;
  // Unless empty: the names of the datasets that go on where they stood. Others begin at their
  // start, such as data that a model is judged on.
  std::vector<std::string> positions_of = {};
  // False: the step begins at 0 and not at the checkpoint's, as for another model.
  bool global_step = true;

  // Training goes on before all rows have been read: each ps reads the rows that steps ask for
  // first, and the others meanwhile. No checkpoint is made before all are there, and a damaged
  // block that is found later ends the run. Where rows cannot be found one by one, all are read
  // first, and the ps's log says why: under a memory limit or a RowPolicy, where rows get other
  // numbers, in checkpoints of early releases. So it is without ps, too.
  bool on_demand = false;

  // Patterns of the checkpoint's names (name_pattern.h): those that one of `include` matches are
  // restored, or all if it is empty, but for those that one of `exclude` matches. A variable of the
  // program that they leave out begins anew, and is no difference for RestoreStatus.
  std::vector<std::string> include = {}, exclude = {};
  // The checkpoint's name -> the program's, with one "*" that is carried over, or none.
  std::map<std::string, std::string> rename = {};
  // False: variables come without their optimizer's slots, which begin anew with its count of
  // updates.
  bool slots = true;
  // The program's variable -> where each row of the checkpoint's goes, kRowNumbersMax of them at
  // most. Rows of the program's that none goes to are at their initial values.
  std::map<std::string, std::shared_ptr<const RowNumbers>> rows = {};

  // Says something else than that each variable goes into the one of its name.
  bool chooses() const {
    return !include.empty() || !exclude.empty() || !rename.empty() || !slots || !rows.empty();
  }
};

// A vocabulary of the checkpoint's model and of the program's, each without its unknown value, as
// FeatureColumn::values. It is named after tf.estimator.VocabInfo, which serves warm starts too.
struct VocabInfo {
  std::vector<std::string> old_vocab, new_vocab;
  Oov oov = Oov::kFirst;  // where the row of unknown values lies, in both
};
// Rows that follow their value: the row of each value of `old_vocab` goes to that of the same value
// in `new_vocab`, and the row of unknown values to that of unknown values.
//   Errors  InvalidArgument: a vocabulary has a value twice.
RowNumbers rows_by_value(const VocabInfo& vocabularies);

}  // namespace cairn
