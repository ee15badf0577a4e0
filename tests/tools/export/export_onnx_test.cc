// Exports of models that ONNX cannot express, or whose files are there already: nothing is written.
// That other programs predict as the model does is read_onnx.py's to say.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <string>

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "model/saved/saved_model.h"
#include "nn/layers/embedding.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/tools/temp_folder.h"
#include "tools/export/export_onnx.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class OnnxFiles : public ::testing::Test {
 protected:
  OnnxFiles() : scope_(strategy_.scope()) {}

  void save(const std::function<Array(const Array& ids)>& body) {
    const ElementSpec input{{{"ids", {DType::kInt64, {Shape::kUnknown}}}}, ""};
    const Function predict = strategy_.function([&](Iterator batch) {
      return Outputs{{"y", body(batch.get_next().features["ids"])}};
    });
    save_model(strategy_, predict, input, {}, folder_.path() + "/model");
  }
  std::string refused() {
    try {
      export_onnx(folder_.path() + "/model", folder_.path() + "/out.onnx");
    } catch (const Error& error) {
      return error.what();
    }
    return "written";
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), {}));
  }

  TempFolder folder_;
  OneDeviceStrategy strategy_{3};
  Scope scope_;
};

TEST_F(OnnxFiles, NameEveryOperationThatOnnxLacks) {
  save([](const Array& ids) {
    const Array drawn = random_normal({3});
    return scatter_update(cast(ids, DType::kFloat32), ids, cast(ids, DType::kFloat32)) +
           reduce_sum(drawn);
  });
  EXPECT_THAT(refused(), AllOf(HasSubstr("random_normal"), HasSubstr("scatter_update")));
  EXPECT_EQ(files(), 1u) << "the model alone";
}

// Rows of a hashed table are found outside of the graph, by a column's ids.
TEST_F(OnnxFiles, RefuseIdsOfAHashedTableThatTheGraphComputes) {
  const nn::Embedding words(
      {.name = "words", .rows = std::int64_t{1} << 40, .dim = 4, .hashed = true});
  save([&](const Array& ids) { return words(ids * Array(std::int64_t{2})); });
  EXPECT_THAT(refused(), AllOf(HasSubstr("\"words\""), HasSubstr("mul")));
  EXPECT_EQ(files(), 1u);
}

TEST_F(OnnxFiles, ReplaceNothing) {
  save([](const Array& ids) { return cast(ids, DType::kFloat32) * 0.5f; });
  folder_.write("out.onnx.data", "mine");
  EXPECT_THAT(refused(), HasSubstr("out.onnx.data exists already"));
  EXPECT_EQ(folder_.read("out.onnx.data"), "mine");
  EXPECT_EQ(files(), 2u);
}

}  // namespace
}  // namespace cairn::tools
