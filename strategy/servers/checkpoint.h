// Checkpoint: saves and restores what a strategy holds, as tf.train.Checkpoint does.
//
//   const std::string folder = Checkpoint(strategy).save("/checkpoints");
//   Checkpoint(another).restore(folder).assert_consumed();
//
// That is variables with their slots, the step, and under parameter servers the positions of
// datasets. All strategies write one format, and restore what any other has saved.
//   Thread  as the strategy's save() and restore().
#pragma once
#include <string>

#include "coordinator/cluster/restore_status.h"
#include "strategy/base/strategy.h"

namespace cairn {

class Checkpoint {
 public:
  // For the strategy whose scope is open; if none is, for the default strategy.
  Checkpoint() : Checkpoint(get_strategy()) {}
  explicit Checkpoint(Strategy& strategy) : strategy_(strategy) {}
  // A new checkpoint below `folder`; its own folder is returned.
  //   Errors  as of Strategy::save().
  std::string save(const std::string& folder) { return strategy_.save({.folder = folder}); }
  //   Errors  as of Strategy::restore().
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options = {}) {
    return strategy_.restore(checkpoint, options);
  }

 private:
  Strategy& strategy_;
};

}  // namespace cairn
