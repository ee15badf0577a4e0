// HybridStrategy: tables on parameter servers, everything else mirrored among the workers; the way
// recommendation models are trained.
//
//   HybridStrategy strategy(resolver);
//   ClusterCoordinator coordinator(strategy);   // as with ParameterServerStrategy
//
//   Tables    variables whose gradients are rows: an embedding that is looked up by ids. A step
//             pulls and pushes the rows that it names, and a push is applied when it comes.
//   Mirrored  all other variables that a function trains. Each worker has a copy, with its
//             optimizer's slots. The workers take steps together: gradients are summed by an
//             all-reduce that begins while the backward pass still runs, and each worker applies
//             the sum to its copy. All copies hold the same bits after every step. One worker
//             sends the sum to the ps as well, whose rows stay what is saved, restored, read by
//             the program, and fetched by a worker that has no copy.
// Which of the two a variable is follows from its first gradient, and stays so.
//
// The program must do as synchronous(0) asks (consistency.h): a step is a round with a closure for
// each worker; gradients are added up, so scale a closure's loss by
// 1 / (its batch * workers); a function pushes once; one that assigns runs alone. Rows of a table
// are updated by each closure for itself, and not by the sum over the step. A worker reads the rows
// of its next step while it computes, so that no update of a table is more than two steps late:
// asynchronous() and bounded(k >= 2) are the same here.
//
//   A worker is lost  its closure goes to the next step, and the others repeat this one without
//                     it, in a smaller group. Back again, it fetches the copies and joins in.
//   A ps is lost      as under ParameterServerStrategy; the workers drop their copies, so that all
//                     go on from the rows that the ps was rebuilt from. With replicas they keep
//                     them: no row has changed.
//   Fewer closures    than workers at the end of an epoch, or of the program's closures: the group
//                     is made anew with as many workers as there are closures.
//
//   Errors  the constructor's: those of ParameterServerStrategy; InvalidArgument: a worker has more
//           than one lane, or synchronous consistency. While tracing: InvalidArgument: a variable
//           that gets gradients of rows in one place and whole ones in another.
//   Thread  as ParameterServerStrategy.
#pragma once
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "strategy/servers/parameter_server_strategy.h"

namespace cairn {

class HybridStrategy final : public ParameterServerStrategy {
 public:
  explicit HybridStrategy(const ClusterResolver& resolver, ParameterServerOptions options = {});
  // On an engine that runs already, and was started for this strategy (the simulation's).
  explicit HybridStrategy(std::unique_ptr<EngineHost> host);

 private:
  VariableChange change_here(const Variable& variable, VariableChange change) override;
  int gradients_here() const override { return num_workers(); }
  void settle_kind(const VariableSpec& spec, bool table);

  std::mutex mutex_;
  std::set<std::string> tables_, mirrored_;  // by name, as their first gradients were
};

}  // namespace cairn
