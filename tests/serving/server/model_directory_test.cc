// Versions that come, take over, are refused and go, while the model serves.
#include "serving/server/model_directory.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>

#include "serving/model/served_model.h"
#include "tests/serving/small_requests.h"

namespace cairn::serving::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct ModelDirectoryTest : SmallRequests {
  static inline const DirectoryOptions kWhenAsked{.threads = 1, .look_every = Duration::zero()};
  std::string versions = small.folder.path() + "/versions";

  // Puts the model as it is now beside the others.
  void add_version(int number) {
    fs::create_directories(versions);
    fs::copy(small.path, versions + "/" + std::to_string(number), fs::copy_options::recursive);
  }
  static std::int64_t served(const ModelDirectory& directory) {
    return directory.find("clicks").version;
  }
  void damage(const std::string& file) {
    std::string bytes = small.folder.read(file);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    small.folder.write(file, bytes);
  }
  template <typename E>
  static std::string refusal(const std::function<void()>& act) {
    try {
      act();
    } catch (const E& error) {
      return error.what();
    }
    ADD_FAILURE() << "was not refused";
    return "";
  }
};

TEST_F(ModelDirectoryTest, ASavedModelIsOneVersionByItsStep) {
  ModelDirectory directory({{.name = "clicks", .path = small.path}}, kWhenAsked);
  EXPECT_FALSE(directory.ready());
  EXPECT_THROW(directory.find("clicks"), UnavailableError);
  directory.look();
  EXPECT_TRUE(directory.ready());
  EXPECT_EQ(served(directory), 12);
  train_on(2);
  directory.look();
  EXPECT_EQ(served(directory), 14);
}

TEST_F(ModelDirectoryTest, TheNewestOfAFolderOfVersionsServes) {
  add_version(3);
  ModelDirectory directory({{.name = "clicks", .path = versions}}, kWhenAsked);
  directory.look();
  EXPECT_EQ(served(directory), 3);
  const auto before = directory.find("clicks").served;
  train_on();
  add_version(20);
  directory.look();
  EXPECT_EQ(served(directory), 20);
  EXPECT_THAT(refusal<NotFoundError>([&] { directory.find("clicks", 3); }),
              HasSubstr("version 3 of the model \"clicks\" does not serve; those that do: 20"));
  EXPECT_EQ(before->predict(batches(8)[0], 0).size(), 2u) << "a request that still uses it";
}

TEST_F(ModelDirectoryTest, PinsAndLabelsKeepVersionsThatAreNotTheNewest) {
  for (const int version : {1, 2, 3}) add_version(version);
  ModelDirectory labelled({{.name = "clicks", .path = versions, .labels = {{"canary", 1}}}},
                          kWhenAsked);
  labelled.look();
  EXPECT_EQ(served(labelled), 3);
  EXPECT_EQ(labelled.find("clicks", {}, "canary").version, 1);
  EXPECT_EQ(labelled.find("clicks", 1).version, 1);
  EXPECT_THROW(labelled.find("clicks", 2), NotFoundError);
  EXPECT_THAT(refusal<NotFoundError>([&] { labelled.find("clicks", {}, "canari"); }),
              HasSubstr("did you mean \"canary\"?"));
  ModelDirectory pinned({{.name = "clicks", .path = versions, .pin = 2}}, kWhenAsked);
  pinned.look();
  EXPECT_EQ(served(pinned), 2);
}

TEST_F(ModelDirectoryTest, ADamagedVersionIsRefusedAndTheOneBeforeServesOn) {
  add_version(1);
  ModelDirectory directory({{.name = "clicks", .path = versions}}, kWhenAsked);
  directory.look();
  add_version(2);
  damage("versions/2/graph");
  directory.look();
  EXPECT_EQ(served(directory), 1);
  const auto status = directory.status("clicks");
  ASSERT_EQ(status.size(), 2u);
  EXPECT_EQ(status[0].state, VersionStatus::State::kRefused);
  EXPECT_EQ(status[0].code, Code::kDataLoss);
  EXPECT_THAT(status[0].error, HasSubstr("versions/2/graph"));
  EXPECT_EQ(status[1].state, VersionStatus::State::kAvailable);
  // Put right, as a copy that was still on its way is.
  fs::remove_all(versions + "/2");
  add_version(2);
  directory.look();
  EXPECT_EQ(served(directory), 2);
}

TEST_F(ModelDirectoryTest, TheNewestSoundVersionServesFromTheStart) {
  for (const int version : {1, 2, 3, 4}) add_version(version);
  for (const char* version : {"3", "4"}) damage(str("versions/", version, "/graph"));
  ModelDirectory directory({{.name = "clicks", .path = versions}}, kWhenAsked);
  directory.look();
  EXPECT_TRUE(directory.ready());
  EXPECT_EQ(served(directory), 2);
  const auto status = directory.status("clicks");
  ASSERT_EQ(status.size(), 3u) << "4, 3, and the one that serves";
  EXPECT_EQ(status[0].state, VersionStatus::State::kRefused);
  EXPECT_EQ(status[1].state, VersionStatus::State::kRefused);
  EXPECT_THAT(status[1].error, HasSubstr("versions/3/graph"));
  // Each takes over when it is put right.
  for (const int version : {3, 4}) {
    fs::remove_all(str(versions, "/", version));
    add_version(version);
    directory.look();
    EXPECT_EQ(served(directory), version);
  }
}

TEST_F(ModelDirectoryTest, AVersionThatIsWrittenAnewAndDamagedKeepsServingAsItWas) {
  for (const int version : {1, 2}) add_version(version);
  ModelDirectory directory({{.name = "clicks", .path = versions}}, kWhenAsked);
  directory.look();
  fs::remove_all(versions + "/2");
  add_version(2);
  damage("versions/2/graph");
  directory.look();
  EXPECT_EQ(served(directory), 2);
  EXPECT_EQ(directory.status("clicks").size(), 1u) << "1 is not loaded";
}

TEST_F(ModelDirectoryTest, ARunWhoseNewestCheckpointIsDamagedServesItsModel) {
  const std::string run = small.folder.path() + "/run";
  fs::create_directories(run);
  fs::copy(small.path, run + "/model", fs::copy_options::recursive);
  cairn::testing::train(strategy, small.model, small.examples(), 3);
  const std::string checkpoint = strategy.save({.folder = run + "/checkpoints"});
  for (const auto& entry : fs::recursive_directory_iterator(checkpoint))
    if (entry.path().extension() == ".sst")
      damage(fs::relative(entry.path(), small.folder.path()).string());
  ModelDirectory directory({{.name = "clicks", .path = run}}, kWhenAsked);
  directory.look();
  EXPECT_EQ(served(directory), 12);
  EXPECT_EQ(directory.status("clicks").front().version, 15);
  EXPECT_EQ(directory.status("clicks").front().state, VersionStatus::State::kRefused);
}

TEST_F(ModelDirectoryTest, AVersionOfAnotherSignatureIsRefused) {
  ModelDirectory directory({{.name = "clicks", .path = small.path}}, kWhenAsked);
  directory.look();
  cairn::testing::train(strategy, small.model, small.examples(), 1);
  const Function other = strategy.function([&](Iterator input) {
    return Outputs{{"score", small.model.logits(input.get_next().features)}};
  });
  save_model(strategy, other, cairn::testing::input_of(small.examples()),
             {.examples = small.examples(), .label = "label"}, small.path);
  directory.look();
  EXPECT_EQ(served(directory), 12);
  EXPECT_THAT(directory.status("clicks").front().error,
              AllOf(HasSubstr("another signature"), HasSubstr("score"), HasSubstr("probability")));
  train_on();
  directory.look();
  EXPECT_EQ(served(directory), 14);
}

TEST_F(ModelDirectoryTest, AModelThatIsRemovedServesOn) {
  ModelDirectory directory({{.name = "clicks", .path = small.path}}, kWhenAsked);
  directory.look();
  fs::remove_all(small.path);
  directory.look();
  EXPECT_EQ(served(directory), 12);
}

TEST_F(ModelDirectoryTest, ARunServesItsNewestCheckpointWithItsModelsGraph) {
  const std::string run = small.folder.path() + "/run";
  fs::create_directories(run);
  fs::copy(small.path, run + "/model", fs::copy_options::recursive);
  ModelDirectory directory({{.name = "clicks", .path = run}}, kWhenAsked);
  directory.look();
  EXPECT_EQ(served(directory), 12);
  cairn::testing::train(strategy, small.model, small.examples(), 3);
  const std::string checkpoint = strategy.save({.folder = run + "/checkpoints"});
  directory.look();
  EXPECT_EQ(served(directory), 15);
  ModelDirectory one({{.name = "clicks", .path = checkpoint}}, kWhenAsked);
  one.look();
  small.save(strategy);
  LoadedModel loaded = LoadedModel::load(small.path);
  for (const Element& batch : batches(8)) {
    const auto wanted = loaded.predict(batch);
    for (const ModelDirectory* each : {&directory, &one}) {
      const ServedVersion version = each->find("clicks");
      EXPECT_EQ(version.version, 15);
      EXPECT_EQ(version.served->about().global_step, 15);
      cairn::testing::expect_equal_bits({version.served->predict(batch, 0)}, {wanted});
    }
  }
}

TEST_F(ModelDirectoryTest, NamesWhatIsThereWhereANameIsWrong) {
  ModelDirectory directory({{.name = "clicks", .path = small.path}}, kWhenAsked);
  EXPECT_THAT(refusal<NotFoundError>([&] { directory.find("click"); }),
              HasSubstr("there is no model \"click\"; did you mean \"clicks\"?"));
  EXPECT_THAT(refusal<NotFoundError>([&] { directory.find("other one"); }),
              HasSubstr("there are: clicks"));
}

TEST_F(ModelDirectoryTest, RefusesWhatCannotBeServed) {
  const auto refused = [&](std::vector<ModelToServe> models) {
    return refusal<Error>([&] { ModelDirectory(std::move(models), kWhenAsked); });
  };
  EXPECT_THAT(refused({}), HasSubstr("there is no model to serve"));
  EXPECT_THAT(refused({{.name = "a/b", .path = small.path}}), HasSubstr("\"a/b\" is no name"));
  EXPECT_THAT(refused({{.name = "a", .path = small.path}, {.name = "a", .path = small.path}}),
              HasSubstr("two models are named \"a\""));
  EXPECT_THAT(refused({{.name = "a", .path = small.path + "-not"}}),
              HasSubstr("there is no folder " + small.path + "-not"));
  EXPECT_THAT(refused({{.name = "a", .path = small.path + "/weights/.."},
                       {.name = "b", .path = small.folder.path()}}),
              HasSubstr("is no saved model (model.json), no run"));
}

// Two versions at a time, whichever requests were remembered: the last ones warm the next.
TEST_F(ModelDirectoryTest, RequestsThatWereAnsweredWarmTheNextVersion) {
  ModelDirectory directory({{.name = "clicks", .path = small.path}}, kWhenAsked);
  directory.look();
  for (const Element& batch : batches(3)) directory.remember("clicks", batch);
  for (int i = 0; i < 20; ++i) {
    train_on();
    directory.look();
    ASSERT_EQ(served(directory), 13 + i);
  }
  const auto memory = directory.find("clicks").served->memory();
  EXPECT_GT(memory.shared, 0u);
}

}  // namespace
}  // namespace cairn::serving::testing
