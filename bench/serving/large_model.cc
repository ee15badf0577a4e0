// cairn-bench-large-model FOLDER [ROWS]: a model like DLRM, whose 26 tables have ROWS (10.6 M) rows
// x 32 together, as FOLDER/1, and the same model after a hundredth of its rows has changed as
// FOLDER/next: versions for a server that answers meanwhile (bench/serving/compare.py).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/base/program.h"
#include "core/graph/ops.h"
#include "model/saved/saved_model.h"
#include "nn/layers/dense.h"
#include "nn/layers/embedding.h"
#include "nn/losses/losses.h"
#include "strategy/base/one_device_strategy.h"

namespace cairn {
namespace {

constexpr int kTables = 26;
constexpr std::int64_t kDim = 32;

struct LargeModel {
  explicit LargeModel(std::int64_t rows) {
    for (int i = 0; i < kTables; ++i)
      tables.emplace_back(nn::EmbeddingOptions{
          .name = "table" + std::to_string(i), .rows = rows / kTables, .dim = kDim});
  }
  Outputs operator()(Iterator input) const {
    const Features features = input.get_next().features;
    const Array ids = features["ids"];
    std::vector<Array> rows;
    for (int i = 0; i < kTables; ++i)
      rows.push_back(tables[static_cast<std::size_t>(i)](subscript(ids, {Slice{}, i})));
    rows.push_back(features["dense"]);
    return {{"probability", sigmoid(tower(concat(rows, 1)))}};
  }

  std::vector<nn::Embedding> tables;
  nn::Mlp tower{nn::MlpOptions{.units = {64, 1}, .name = "tower"}};
};

void change_rows(OneDeviceStrategy& strategy, const LargeModel& model, std::int64_t rows) {
  std::mt19937_64 random(1);
  const std::int64_t each = rows / kTables, changed = each / 100;
  for (int i = 0; i < kTables; ++i) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(each));
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    std::ranges::shuffle(ids, random);
    ids.resize(static_cast<std::size_t>(changed));
    Tensor values(DType::kFloat32, {changed, kDim});
    for (float& value : values.mutable_values<float>())
      value = static_cast<float>(random() % 1000) / 1000;
    auto scope = strategy.scope();
    model.tables[static_cast<std::size_t>(i)].table().scatter_update(
        Array(Tensor::of<std::int64_t>({changed}, std::span<const std::int64_t>(ids))),
        Array(values));
  }
}

void make(const std::string& folder, std::int64_t rows) {
  OneDeviceStrategy strategy(1);
  LargeModel model(rows);
  const ElementSpec input{{{"dense", {DType::kFloat32, {Shape::kUnknown, 13}}},
                           {"ids", {DType::kInt64, {Shape::kUnknown, kTables}}}},
                          ""};
  auto scope = strategy.scope();
  const Function predict = strategy.function([&](Iterator batch) { return model(batch); });
  save_model(strategy, predict, input, {.name = "dlrm"}, folder + "/1");
  change_rows(strategy, model, rows);
  save_model(strategy, predict, input, {.name = "dlrm"}, folder + "/next");
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-large-model", [&] {
    if (argc < 2) throw cairn::InvalidArgumentError("FOLDER [ROWS] is wanted");
    cairn::make(argv[1], argc > 2 ? std::atoll(argv[2]) : 10'600'000);
    return 0;
  });
}
