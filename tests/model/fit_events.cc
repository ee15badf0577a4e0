// A fit() with the TensorBoard callback into a folder, with validation, histograms and the loss of
// batches, which is killed in its third epoch and started again; prints its history, for
// read_fit.py to compare.
#include <cstdio>

#include "model/tensorboard.h"
#include "tests/model/small_models.h"

namespace {

using namespace cairn;

History fit(const std::string& folder, std::shared_ptr<Callback> last) {
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  cairn::testing::LinearModel linear;
  const cairn::testing::LinearData data(40);
  return linear.model.fit(
      data.x, data.y,
      {.epochs = 3,
       .batch_size = 8,
       .validation_split = 0.2,
       .callbacks = {std::make_shared<TensorBoard>(
                         folder + "/board",
                         TensorBoardOptions{.histogram_freq = 2, .update_freq = 2}),
                     std::make_shared<BackupAndRestore>(folder + "/backup"), std::move(last)},
       .verbose = Verbose::kSilent});
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw InvalidArgumentError("fit_events FOLDER");
  try {
    fit(argv[1], std::make_shared<cairn::testing::KillsAt>(2, 2));
    throw InternalError("it was not killed");
  } catch (const cairn::testing::Killed&) {
  }
  const History history = fit(argv[1], std::make_shared<LambdaCallback>(LambdaCallbackOptions{}));
  for (const auto& [name, values] : history.history) {
    std::printf("%s", name.c_str());
    for (const double value : values) std::printf(" %.17g", value);
    std::printf("\n");
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
