// TensorBoard: the callback that writes the course of training for TensorBoard to read.
//
//   model.fit(train, {.epochs = 10,
//                     .validation_data = validation,
//                     .callbacks = {std::make_shared<TensorBoard>("logs/run1")}});
//   $ tensorboard --logdir logs
//
// Under the reference's tags: "epoch_loss", "epoch_auc" and so on, of training in the folder
// "train", of the validation data in "validation"; "batch_loss" if asked; each variable's values as
// a histogram under its name; the graph of a prediction; the model's summary as a text. A fit()
// that goes on after it was killed goes on in the same curves.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "model/callback.h"

namespace cairn {

class EventFile;  // model/writers/event_file.h
class EventFiles;

struct TensorBoardOptions {
  std::int64_t histogram_freq = 0;  // epochs from one set of histograms to the next; 0: none
  bool write_graph = true;
  // Steps of an epoch from one "batch_loss" to the next; 0: none.
  std::int64_t update_freq = 0;
};

// Where several processes train together, one of them writes. Histograms read whole variables.
//   Errors  the disk's, which end fit().
class TensorBoard final : public Callback {
 public:
  explicit TensorBoard(std::string folder, TensorBoardOptions options = {});
  ~TensorBoard() override;
  void on_train_begin(TrainingRun& run) override;
  void on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs& logs) override;
  void on_epoch_begin(TrainingRun& run, std::int64_t epoch) override;
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override;
  void on_train_end(TrainingRun& run, const Logs& logs) override;
  bool wants_batch_logs() const override { return options_.update_freq > 0; }

 private:
  void write_model(TrainingRun& run);
  EventFile& file_of_training();
  void write_histograms(TrainingRun& run, std::int64_t epoch);
  const std::string folder_;
  const TensorBoardOptions options_;
  std::unique_ptr<EventFiles> files_;  // null: another process writes, or training has not begun
  std::int64_t epoch_ = 0;
  std::int64_t first_epoch_ = 0, first_of_training_ = 0;  // steps, as EventFile has them
};

}  // namespace cairn
