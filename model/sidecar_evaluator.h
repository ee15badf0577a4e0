// SidecarEvaluator: judges the checkpoints of a training program beside it, as an evaluator task
// does: a process of its own, with a strategy of its own, that takes each new checkpoint of a
// folder.
//
//   OneDeviceStrategy strategy;
//   auto scope = strategy.scope();
//   Model model = ...;  // the network and compile() of the training program
//   SidecarEvaluator(model, test.batch(500), {.checkpoints = "/run/checkpoints"}).run();
//
// Checkpoints that come faster than they are judged are passed over: the newest counts.
//   Thread  the model's.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/clock.h"
#include "data/dataset/dataset.h"
#include "model/callback.h"

namespace cairn {

class Model;

struct SidecarOptions {
  std::string checkpoints;           // the folder that the training program saves into; required
  std::int64_t max_evaluations = 0;  // 0: as long as checkpoints come
  // How long it waits for another checkpoint before it ends.
  Duration patience = std::chrono::minutes(10);
  Duration poll = std::chrono::seconds(1);
  // Called after each evaluation, with the path of its checkpoint and the results.
  std::function<void(const std::string& checkpoint, const Logs& logs)> on_evaluation = {};
};

class SidecarEvaluator {
 public:
  // All outlive it.
  SidecarEvaluator(Model& model, Dataset batches, SidecarOptions options);
  // Returns after max_evaluations, or when no checkpoint has come for `patience`.
  //   Result  how many checkpoints it has judged.
  //   Errors  those of evaluate(), and of the files. FailedPrecondition: `batches` has feature
  //           columns other than those of fit(), which its checkpoint records. A checkpoint that
  //           is removed while it is read is passed over.
  std::int64_t run();

 private:
  Model& model_;
  const Dataset batches_;
  const SidecarOptions options_;
};

}  // namespace cairn
