// A fit() with the TensorBoard callback into a folder, with validation, histograms and the loss of
// batches; prints its history, for read_fit.py to compare.
#include <cstdio>

#include "model/tensorboard.h"
#include "tests/model/small_models.h"

int main(int argc, char** argv) try {
  using namespace cairn;
  if (argc != 2) throw InvalidArgumentError("fit_events FOLDER");
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  cairn::testing::LinearModel linear;
  const cairn::testing::LinearData data(40);
  const History history =
      linear.model.fit(data.x, data.y,
                       {.epochs = 3,
                        .batch_size = 8,
                        .validation_split = 0.2,
                        .callbacks = {std::make_shared<TensorBoard>(
                            argv[1], TensorBoardOptions{.histogram_freq = 2, .update_freq = 2})},
                        .verbose = Verbose::kSilent});
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
