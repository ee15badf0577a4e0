// New outputs of a saved model: what they are computed from, what stays as it was, and what is
// refused.
#include "model/saved/replace_outputs.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/base/json.h"
#include "model/saved/model_file.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/model/small_model.h"
#include "tests/strategy/in_sync/workers_in_step.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

Outputs halved(const Outputs& today) {
  return {{"probability", today["probability"] * Array(0.5f)},
          {"logits", today["logits"]},
          {"raw", today["probability"]}};
}

struct ReplacedOutputs : ::testing::Test {
  OneDeviceStrategy strategy{3};
  SmallSave small;
  std::vector<std::vector<Tensor>> own;

  ReplacedOutputs() {
    train(strategy, small.model, small.examples());
    own = own_predictions(strategy, small.model, small.examples(), 8, 5);
    small.save(strategy, {.name = "clicks", .metadata = R"({"by": "a test"})"});
  }
  std::string text(const std::string& name) const {
    return small.folder.read("models/small/" + name);
  }
  std::vector<std::vector<Tensor>> predictions() const {
    LoadedModel loaded = LoadedModel::load(small.path);
    return loaded_predictions(loaded, loaded.examples({small.data}), 8);
  }
  std::vector<std::string> beside() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(small.folder.path() + "/models"))
      names.push_back(entry.path().filename());
    return names;
  }
};

TEST_F(ReplacedOutputs, AreWhatTheModelPredictsFromThenOn) {
  const SavedModel model = replace_outputs(small.path, halved, R"({"halved": true})");

  EXPECT_EQ(model.outputs, read_saved_model(small.path).outputs);
  const auto now = predictions();
  ASSERT_EQ(now.size(), own.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    expect_equal_bits({{now[i][2], now[i][1]}}, {own[i]});
    for (std::size_t row = 0; row < 8; ++row)
      EXPECT_EQ(now[i][0].values<float>()[row], own[i][0].values<float>()[row] * 0.5f);
  }
  EXPECT_EQ(model.metadata, read_saved_model(small.path).metadata);
  EXPECT_EQ(parse_json(model.metadata, "")["halved"], true);
  EXPECT_EQ(read_saved_model(small.path).name, "clicks");
  EXPECT_EQ(read_saved_model(small.path).label, "label");
}

TEST_F(ReplacedOutputs, MayBeComputedFromThoseThatWereReplacedBefore) {
  replace_outputs(small.path, halved, "{}");
  replace_outputs(small.path, halved, "{}");
  const auto now = predictions();
  EXPECT_EQ(now[0][0].values<float>()[3], own[0][0].values<float>()[3] * 0.25f);
}

// Not a byte of the model shows that it ever had others.
TEST_F(ReplacedOutputs, TakenBackLeaveTheModelAsItWas) {
  const std::string graph = text("graph"), description = text("model.json");
  replace_outputs(small.path, halved, R"({"halved": true})");
  EXPECT_NE(text("graph"), graph);
  replace_outputs(
      small.path,
      [](const Outputs& today) {
        return Outputs{{"probability", today["raw"]}, {"logits", today["logits"]}};
      },
      R"({"by": "a test"})");
  EXPECT_EQ(text("graph"), graph);
  EXPECT_EQ(text("model.json"), description);
  expect_equal_bits(predictions(), own);
}

// Its variables are described and saved all the same.
TEST_F(ReplacedOutputs, MayNeedLessOfTheModel) {
  replace_outputs(
      small.path,
      [](const Outputs& today) {
        return Outputs{{"zero", today["probability"] - today["probability"]}, {"one", Array(1.0f)}};
      },
      "{}");
  EXPECT_EQ(read_saved_model(small.path).variables.size(), 6u);
  EXPECT_EQ(predictions()[0][0].values<float>()[0], 0.0f);
  replace_outputs(
      small.path,
      [](const Outputs& today) {
        return Outputs{{"one", today["one"]}};
      },
      "{}");
  EXPECT_LT(read_model_graph(read_saved_model(small.path)).nodes.size(), 4u);
  EXPECT_EQ(predictions()[0][0].item<float>(), 1.0f);
}

// ---- its place ----

TEST_F(ReplacedOutputs, CopyNoWeightsAndLeaveNothingBeside) {
  struct ::stat before {
  }, after{};
  ASSERT_EQ(::stat((small.path + "/weights/MANIFEST.json").c_str(), &before), 0);
  replace_outputs(small.path, halved, "{}");
  ASSERT_EQ(::stat((small.path + "/weights/MANIFEST.json").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(after.st_nlink, 1u) << "the old folder is gone";
  EXPECT_THAT(beside(), ElementsAre("small"));
}

TEST_F(ReplacedOutputs, KeepFilesOfOthersInTheFolder) {
  small.folder.write("models/small/notes.txt", "of the second of May");
  fs::create_symlink("nowhere", small.path + "/link");
  replace_outputs(small.path, halved, "{}");
  EXPECT_EQ(text("notes.txt"), "of the second of May");
  EXPECT_EQ(fs::read_symlink(small.path + "/link"), "nowhere");
  small.folder.write("models/small/notes.txt", "of the third");
  EXPECT_NO_THROW(predictions()) << "no checksum holds them to what they were";
}

TEST_F(ReplacedOutputs, OfALinkedFolderAreThoseOfTheFolderBehindTheLink) {
  fs::create_directory(small.folder.path() + "/links");
  const std::string link = small.folder.path() + "/links/newest";
  fs::create_directory_symlink(small.path, link);
  replace_outputs(link, halved, "{}");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_saved_model(small.path).outputs.size(), 3u);
  EXPECT_THAT(beside(), ElementsAre("small"));
}

// A crash before the exchange leaves the old model, and a folder whose name says what it is.
TEST_F(ReplacedOutputs, HalfWrittenBesideAreNoMatter) {
  const std::string left = small.path + ".tmp-1-1";
  fs::create_directories(left + "/weights");
  fs::create_hard_link(small.path + "/graph", left + "/graph");
  expect_equal_bits(predictions(), own);
  fs::remove_all(left);
  expect_equal_bits(predictions(), own);
}

// ---- refusals, which leave the model as it was ----

TEST_F(ReplacedOutputs, AreComputedFromTodaysAlone) {
  const std::string description = text("model.json");
  const auto refused = [&](const MakeOutputs& make, const std::string& metadata = "{}") {
    const std::string said = message_of([&] { replace_outputs(small.path, make, metadata); });
    EXPECT_EQ(text("model.json"), description);
    EXPECT_THAT(beside(), ElementsAre("small"));
    return said;
  };
  Variable variable = [&] {
    auto scope = strategy.scope();
    return strategy.create_variable({.name = "of a strategy", .shape = {}});
  }();
  EXPECT_THAT(refused([&](const Outputs& today) {
                return Outputs{{"p", today["probability"] * variable.read()}};
              }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("from the model's own alone")));
  EXPECT_THAT(refused([](const Outputs&) { return Outputs{}; }), HasSubstr("at least one"));
  EXPECT_THAT(refused([](const Outputs& today) {
                return Outputs{{"p", today["probabilty"]}};
              }),
              HasSubstr("did you mean \"probability\""));
  EXPECT_THAT(refused(halved, "[1]"), HasSubstr("JSON object"));
}

// Else the damage would get a checksum that agrees with it.
TEST_F(ReplacedOutputs, OfADamagedModelAreRefused) {
  small.folder.write("models/small/graph", "nothing");
  EXPECT_THAT(message_of([&] { replace_outputs(small.path, halved, "{}"); }),
              AllOf(HasSubstr("DataLoss"), HasSubstr(small.path + "/graph")));
  EXPECT_EQ(text("graph"), "nothing");
  EXPECT_THAT(message_of([&] { replace_outputs(small.folder.path(), halved, "{}"); }),
              HasSubstr("NotFound"));
}

// A disk that cannot be written to is an error before anything is computed. Root may write into
// any folder, so a name that is too long stands for it.
TEST_F(ReplacedOutputs, BesideWhichNothingCanBeWrittenAreToldWithTheCure) {
  EXPECT_NO_THROW(verify_replaceable(small.path));
  EXPECT_THAT(beside(), ElementsAre("small"));
  const std::string longest = small.folder.path() + "/models/" + std::string(250, 'm');
  fs::rename(small.path, longest);
  EXPECT_THAT(
      message_of([&] { verify_replaceable(longest); }),
      AllOf(HasSubstr("File name too long"), HasSubstr("models writable, or copy the model")));
  EXPECT_NE(message_of([&] { replace_outputs(longest, halved, "{}"); }), "");
  EXPECT_EQ(read_saved_model(longest).outputs.size(), 2u);
}

}  // namespace
}  // namespace cairn::testing
