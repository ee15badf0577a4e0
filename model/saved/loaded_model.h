// LoadedModel: a saved model that predicts.
//
//   LoadedModel model = LoadedModel::load("/models/clicks");
//   model.predict(model.examples({"new.csv"}), [](const std::vector<Tensor>& outputs) { ... });
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/dataset/lines_read.h"
#include "data/dataset/pipes.h"
#include "model/saved/saved_model.h"

namespace cairn {

struct PredictOptions {
  // Examples at once, of data that is not in batches; unset: 1024. InvalidArgument beside batches.
  std::optional<std::int64_t> batch = {};
  LineEvents line_events = {};   // of reading its files
  Pipes pipes = Pipes::kRefuse;  // the data is read once, so that it may come from a pipe
};

// The model's variables are its own, in this process.
//   Result  the bits that the strategy which saved it would give on one device of the same kind.
//   Thread  one at a time.
class LoadedModel {
 public:
  // Verified as by read_saved_model(), before anything of it is used. `device`: as of
  // OneDeviceStrategy.
  //   Errors  read_saved_model()'s and the device's.
  static LoadedModel load(const std::string& folder, const std::string& device = "cpu:0");
  ~LoadedModel();
  LoadedModel(LoadedModel&&) noexcept;
  LoadedModel& operator=(LoadedModel&&) noexcept;

  const SavedModel& about() const;

  // The outputs for one batch, whose columns are those of about().input, in that order.
  //   Errors  InvalidArgument: other columns; names the first that does not fit. Those of a run.
  std::vector<Tensor> predict(const Element& batch);
  // Calls `take` with the outputs of one batch after another, in the order of the data. Of its
  // columns those are taken that about().input names.
  //   Result  lines of its files that were left out as bad.
  //   Errors  InvalidArgument: a column is missing, or has another type; names it. Those of reading
  //           and of running, and what `take` throws.
  std::int64_t predict(const Dataset& data,
                       const std::function<void(const std::vector<Tensor>& outputs)>& take,
                       const PredictOptions& options = {});

  // Examples as the model takes them, from files of the form that it was trained on.
  //   Errors  FailedPrecondition: it was saved without examples, or with a source without files.
  Dataset examples(std::vector<std::string> files) const { return prepare(read(std::move(files))); }
  // The two halves of that: what the files hold; and what the features make of such columns, from
  // wherever they come.
  // `on_error`: of bad lines or records; empty: as the examples that the model was saved with.
  Dataset read(std::vector<std::string> files, std::optional<OnError> on_error = {}) const;
  Dataset prepare(const Dataset& raw) const;

 private:
  struct State;
  explicit LoadedModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cairn
