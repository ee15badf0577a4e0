// TrainingPlace: how far a fit() has come, as a checkpoint's metadata keeps it.
//   Thread  values; any.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "model/history.h"

namespace cairn {

struct TrainingPlace {
  std::int64_t epoch = 0;  // the one to go on with
  std::int64_t step = 0;   // of this epoch: how many have been taken
  // All steps of this fit(), which have taken a batch each.
  std::int64_t batches = 0;
  std::vector<std::vector<double>> sums;  // of the epoch so far, by metric
  History history;                        // of the epochs before
  // The data: its feature columns (model/fitted_columns.h), and its fingerprint; empty: not known.
  Json features = Json::object();
  std::string data;
  bool stopping = false;  // a callback has asked for the end
  Json callbacks;         // their states (callback_states.h); null: none were kept
  bool told = false;      // these states hold the beginning of `epoch`
  // ---- in a journal ----
  std::int64_t began = 0;  // how many steps of the data had ended when this fit() had taken none
  std::int64_t notes = 0;  // how many places were noted before
  std::int64_t pipelines = 1;  // of the data
  bool ended = false;          // fit() has returned

  std::string to_json() const;
  // `where` names what holds `saved`: "the checkpoint /c/ckpt-1".
  //   Errors  FailedPrecondition: `saved` is a place in other data, or of other features.
  void verify(const TrainingPlace& saved, const std::string& where) const;
  //   Errors  FailedPrecondition, naming the checkpoint: its metadata is that of another program.
  static TrainingPlace of_checkpoint(const std::string& checkpoint);
  // Reads what to_json() wrote.
  //   Errors  FailedPrecondition, naming `where`: it is no place of a fit().
  static TrainingPlace parse(const std::string& text, const std::string& where);
};

}  // namespace cairn
