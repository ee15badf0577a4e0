// ServedModel: one version of a model in memory, from which several threads predict at once.
//
//   auto model = ServedModel::load("/models/clicks", {.threads = 2});
//   model->predict(batch, 0);                      // on computing thread 0
//
// It is a LoadedModel (model/saved/loaded_model.h) without the rule of one thread at a time:
// the threads share the weights, and each has a workspace of its own. Predictions never change the
// weights; those of a live model are changed by the run that it follows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/tensor/element.h"
#include "model/saved/saved_model.h"
#include "serving/follow/row_stream.h"
#include "serving/model/memory_budget.h"
#include "serving/model/read_counters.h"

namespace cairn::serving {

class LiveRows;

struct ServeOptions {
  int threads = 1;  // that compute
  // The version that this one replaces: rows that are equal in both are in memory once.
  // InvalidArgument: it takes or gives other columns.
  std::shared_ptr<const class ServedModel> before = {};
  // A checkpoint to take the weights from; empty: the model's own.
  std::string weights = {};
  // The limit that its memory counts for, with that of others; tables that do not fit are read from
  // the checkpoint row by row (stored_tables.h). Null: all is in memory.
  std::shared_ptr<MemoryBudget> memory = {};
  std::shared_ptr<ReadCounters> counters = {};  // of the model's reads; null: they are not counted
  // Its rows are LiveRows, which a training run may change while they serve. `before` is not used.
  bool live = false;
  // The model has no weights yet: all of its rows are at initial values, until they are changed.
  bool untrained = false;
  // A live model's tables stay on these ps (ps_tables.h). Unset: they are in memory.
  RowsOfRun ps = {};
  Duration ps_patience = std::chrono::milliseconds(100);
};

class ServedModel {
 public:
  // Reads and verifies the folder of a saved model.
  //   Errors  read_saved_model()'s. NotFound, DataLoss: the checkpoint is not there, is damaged, or
  //           lacks a variable. ResourceExhausted: not enough memory, of the system's or the
  //           limit's. Unimplemented: a table does not fit into the limit, and lies where it cannot
  //           be read row by row.
  //   Thread  any that may block on files.
  static std::shared_ptr<const ServedModel> load(const std::string& folder,
                                                 const ServeOptions& options = {});
  ~ServedModel();
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;

  // Its global_step is that of the weights.
  const SavedModel& about() const;
  // Whether every output has a row for each example, so that requests may be computed together and
  // each gets its own rows. A model with another output is computed request by request.
  bool is_by_example() const;
  // The outputs for one batch, whose columns are those of about().input, in that order, of types
  // that these admit. An id that a hashed table has no row for reads as its initial value.
  //   Errors  those of a run: InvalidArgument, an id outside of its table. DataLoss: a row lies in
  //           a damaged block of a table that is read from disk; names its file.
  //   Thread  each number in [0, threads) is used by one thread at a time.
  std::vector<Tensor> predict(const Element& batch, int thread) const;
  // Rows of that thread's last prediction which did not come from the ps in time.
  //   Thread  as predict().
  std::int64_t stale_rows(int thread) const;
  // The newest step that rows read from the ps may contain; 0: none were read.
  std::int64_t ps_step() const;

  // The part of this version that computes some of its outputs, in that order, from the columns
  // that these need: its about() has those alone. The weights are shared.
  //   Errors  FailedPrecondition: the model has no such output. part_of()'s
  //           (model/saved/graph_part.h).
  std::shared_ptr<const ServedModel> part(const std::vector<std::string>& outputs) const;

  struct Memory {
    std::size_t bytes = 0;   // of all weights
    std::size_t shared = 0;  // of these, in common with the version before
  };
  Memory memory() const;

  // The rows of a live model by the names of their variables; of another one: none.
  const std::map<std::string, std::shared_ptr<LiveRows>>& live() const;

 private:
  struct State;
  explicit ServedModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cairn::serving
