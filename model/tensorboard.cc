#include "model/tensorboard.h"

#include <utility>

#include "core/base/error.h"
#include "model/model.h"
#include "model/writers/event_file.h"

namespace cairn {

TensorBoard::TensorBoard(std::string folder, TensorBoardOptions options)
    : folder_(std::move(folder)), options_(options) {
  if (options_.histogram_freq < 0 || options_.update_freq < 0)
    throw InvalidArgumentError("TensorBoard: histogram_freq and update_freq must be at least 0");
}
TensorBoard::~TensorBoard() = default;

void TensorBoard::on_train_begin(TrainingRun&) { files_.reset(); }

// At the first epoch of this fit(), which is known only now: a backup may have been restored.
// TensorBoard drops the events of earlier files from there on, of all tags alike: beside the steps
// of batches, which are the larger numbers, epochs cannot be dropped.
void TensorBoard::on_epoch_begin(TrainingRun& run, std::int64_t epoch) {
  epoch_ = epoch;
  if (files_ || !run.writes_files()) return;
  first_epoch_ = epoch;
  first_of_training_ =
      options_.update_freq > 0 ? epoch * run.steps_per_epoch() + run.step() : epoch;
  files_ = std::make_unique<EventFiles>(folder_);
  write_model(run);
}

EventFile& TensorBoard::file_of_training() { return files_->file("train", first_of_training_); }

void TensorBoard::write_model(TrainingRun& run) {
  EventFile& train = file_of_training();
  train.text("model", "    " + run.model().summary(), epoch_);
  if (options_.write_graph) train.graph(run.model().predict_graph());
  train.flush();
}

void TensorBoard::on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs& logs) {
  if (!files_ || options_.update_freq == 0 || (step + 1) % options_.update_freq != 0) return;
  const std::int64_t taken = epoch_ * run.steps_per_epoch() + step;
  for (const auto& [name, value] : logs) file_of_training().scalar("batch_" + name, value, taken);
}

void TensorBoard::on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) {
  const bool histograms = options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0;
  if (histograms) write_histograms(run, epoch);  // reads variables, in which all processes meet
  if (!files_) return;
  for (const auto& [name, value] : logs) {
    if (name.starts_with("val_"))
      files_->file("validation", first_epoch_).scalar("epoch_" + name.substr(4), value, epoch);
    else
      file_of_training().scalar("epoch_" + name, value, epoch);
  }
  files_->flush();
}

void TensorBoard::write_histograms(TrainingRun& run, std::int64_t epoch) {
  const std::vector<Tensor> weights = run.model().get_weights();
  const std::vector<Variable>& variables = run.model().variables();
  for (std::size_t i = 0; files_ && i < weights.size(); ++i)
    if (weights[i].dtype() == DType::kFloat32)
      file_of_training().histogram(variables[i].name(), weights[i].values<float>(), epoch);
}

void TensorBoard::on_train_end(TrainingRun&, const Logs&) { files_.reset(); }

}  // namespace cairn
