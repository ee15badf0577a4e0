// A saved model: its contents, the folders that it may replace, and its errors.
#include <gmock/gmock.h>

#include <filesystem>

#include "core/base/json.h"
#include "model/saved/model_examples.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/model/small_model.h"
#include "tests/strategy/in_sync/workers_in_step.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct Saved : ::testing::Test {
  OneDeviceStrategy strategy{3};
  SmallSave small;
  Saved() { train(strategy, small.model, small.examples()); }
  std::string text(const std::string& name) const { return small.folder.read("models/" + name); }
};

TEST_F(Saved, SaysWhatItTakesAndGives) {
  small.save(strategy, {.name = "clicks", .metadata = R"({"by": "a test"})"});

  const SavedModel model = read_saved_model(small.path);

  EXPECT_THAT(signature_text(model),
              AllOf(HasSubstr("model \"clicks\" of step 12"), HasSubstr("word  int64[?]"),
                    HasSubstr("ids/row_splits  int64[?]"), HasSubstr("numeric  float32[?, 1]"),
                    HasSubstr("probability  float32[?]"), HasSubstr("logits  float32[?, 1]")));
  EXPECT_EQ(model.label, "label");
  EXPECT_EQ(parse_json(model.metadata, "")["by"], "a test");
}

// The slots of an optimizer, and variables that prediction does not read, are not needed.
TEST_F(Saved, HoldsWhatPredictionReadsAndNothingElse) {
  auto scope = strategy.scope();
  strategy.create_variable({.name = "of training", .shape = {1000}});
  small.save(strategy);
  std::vector<std::string> names;
  for (const VariableSpec& spec : read_saved_model(small.path).variables)
    names.push_back(spec.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("words", "ids", "tower/dense_0/kernel",
                                                     "tower/dense_0/bias", "tower/dense_1/kernel",
                                                     "tower/dense_1/bias"));
  const Json manifest = parse_json(text("small/weights/MANIFEST.json"), "");
  for (const Json& variable : manifest["variables"])
    EXPECT_TRUE(variable["slots"].empty()) << variable["name"];
  EXPECT_THAT(text("small/model.json"), ::testing::Not(HasSubstr(small.folder.path())))
      << "names of this machine are nobody's business";
}

TEST_F(Saved, OutlivesItsDataAndItsFolder) {
  const auto own = own_predictions(strategy, small.model, small.examples(), 8, 5);
  small.save(strategy);
  fs::rename(small.data, small.data + "-moved");
  fs::rename(small.path, small.folder.path() + "/elsewhere");
  LoadedModel loaded = LoadedModel::load(small.folder.path() + "/elsewhere");
  expect_equal_bits(loaded_predictions(loaded, loaded.examples({small.data + "-moved"}), 8), own);
}

// Ids that training never saw have the initial values that the strategy's seed gives them.
TEST_F(Saved, HasTheInitialValuesOfRowsThatWereNeverTouched) {
  small.save(strategy);
  LoadedModel loaded = LoadedModel::load(small.path);
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += str("0,unseen", i, ",1,2\n");
  small.folder.write("new.csv", lines);
  const Dataset unseen = small_examples(small.folder.path() + "/new.csv");
  const auto own = own_predictions(strategy, small.model, unseen, 20, 1);
  expect_equal_bits(loaded_predictions(loaded, unseen, 20), own);
  EXPECT_NE(own[0][1].values<float>()[0], own[0][1].values<float>()[1]);
}

TEST_F(Saved, PredictsFromElementsAndFromColumnsThatComeFromAnywhere) {
  const auto own = own_predictions(strategy, small.model, small.examples(), 40, 1);
  small.save(strategy);
  LoadedModel loaded = LoadedModel::load(small.path);
  Element batch = *open(small.examples().batch(40))->next();
  batch.pop_back();  // the label
  expect_equal_bits({loaded.predict(batch)}, own);
  batch.pop_back();
  EXPECT_THAT(message_of([&] { loaded.predict(batch); }), HasSubstr("4 columns"));
  batch.push_back(Tensor::zeros(DType::kFloat32, {40, 2}));
  EXPECT_THAT(message_of([&] { loaded.predict(batch); }),
              AllOf(HasSubstr("\"numeric\""), HasSubstr("float32[40, 2]")));
}

TEST_F(Saved, OfAModelWithoutExamplesTakesElementsAlone) {
  save_model(strategy, small.model.predict(strategy), input_of(small.examples()), {}, small.path);
  LoadedModel loaded = LoadedModel::load(small.path);
  EXPECT_THAT(message_of([&] { loaded.examples({small.data}); }), HasSubstr("FailedPrecondition"));
  EXPECT_EQ(loaded_predictions(loaded, small.examples(), 40).size(), 1u);
}

TEST_F(Saved, MapsOfItsExamplesGoWithIt) {
  const Dataset doubled = small_examples(small.data).map([](const Features& all) {
    return Outputs{{"twice", all["numeric"] * Array(2.0f)}};
  });
  Function predict([](Iterator input) { return input.get_next().features["twice"]; });
  save_model(strategy, predict, {{{"twice", {DType::kFloat32, {Shape::kUnknown, 1}}}}, ""},
             {.examples = doubled}, small.path);
  LoadedModel loaded = LoadedModel::load(small.path);
  EXPECT_EQ(loaded.about().variables.size(), 0u);
  const auto twice = loaded_predictions(loaded, loaded.examples({small.data}), 40)[0][0];
  EXPECT_FLOAT_EQ(twice.values<float>()[39], 2 * (39 * 0.25f - 4) / 3);
}

// ---- its place ----

TEST_F(Saved, ReplacesASavedModelAndLeavesNothingBeside) {
  small.save(strategy, {.name = "first"});
  small.save(strategy, {.name = "second"});
  EXPECT_EQ(read_saved_model(small.path).name, "second");
  std::vector<std::string> beside;
  for (const auto& entry : fs::directory_iterator(small.folder.path() + "/models"))
    beside.push_back(entry.path().filename());
  EXPECT_THAT(beside, ElementsAre("small"));
}

TEST_F(Saved, ReplacesNothingElse) {
  fs::create_directories(small.path);
  EXPECT_NO_THROW(small.save(strategy)) << "an empty folder is nobody's";
  fs::remove_all(small.path);
  fs::create_directories(small.path);
  small.folder.write("models/small/thesis.txt", "three years");
  EXPECT_THAT(message_of([&] { small.save(strategy); }),
              AllOf(HasSubstr("AlreadyExists"), HasSubstr(small.path)));
  EXPECT_EQ(text("small/thesis.txt"), "three years");
}

TEST_F(Saved, IsLeftAsItWasWhereANewOneCannotBeMade) {
  small.save(strategy, {.name = "first"});
  EXPECT_THAT(
      message_of([&] { small.save(strategy, {.name = "second", .checkpoint = "nowhere"}); }),
      HasSubstr("nowhere"));
  EXPECT_EQ(read_saved_model(small.path).name, "first");
}

// ---- what is no prediction ----

TEST_F(Saved, RefusesAFunctionThatTrains) {
  EXPECT_THAT(message_of([&] {
                save_model(strategy, small.model.step(strategy),
                           small.examples().batch(4).element_spec(), {}, small.path);
              }),
              HasSubstr("changes variables"));
  EXPECT_FALSE(fs::exists(small.path));
}

TEST_F(Saved, RefusesMetadataAndExamplesThatDoNotFit) {
  EXPECT_THAT(message_of([&] { small.save(strategy, {.metadata = "[1]"}); }),
              HasSubstr("JSON object"));
  EXPECT_THAT(message_of([&] { small.save(strategy, {.examples = small.examples().shuffle(10)}); }),
              HasSubstr("features() and map()"));
  EXPECT_THAT(message_of([&] { small.save(strategy, {.examples = Dataset::range(3)}); }),
              HasSubstr("\"word\""));
}

TEST(ModelExamples, OfIdxFilesTakeOneForEachColumnOrAllButTheLabel) {
  const Dataset stored = without_files(
      Dataset::idx({{"image", {"a", "b"}, DType::kUint8, {2, 2}}, {"class", {"c", "d"}}}, "class"));

  EXPECT_EQ(over_files(stored, {"x"}).element_spec().columns.size(), 1u);
  EXPECT_EQ(over_files(stored, {"x", "y"}).element_spec().label, "class");
  EXPECT_THAT(
      message_of([&] {
        over_files(stored, {"x", "y", "z"});
      }),
      AllOf(HasSubstr("columns image, class: got 3"), HasSubstr("all but that of \"class\"")));
}

}  // namespace
}  // namespace cairn::testing
