// A model that is not as it was saved is not used: each file, at several places.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/base/sha256.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/model/small_model.h"
#include "tests/strategy/in_sync/workers_in_step.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct Damaged : ::testing::Test {
  SmallSave small;
  std::vector<std::string> files;

  Damaged() {
    OneDeviceStrategy strategy;
    train(strategy, small.model, small.examples());
    small.save(strategy);
    for (const auto& entry : fs::recursive_directory_iterator(small.path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::string error() const {
    return message_of([&] { LoadedModel::load(small.path); });
  }
};

TEST_F(Damaged, AFlippedBitAnywhereIsToldWithItsFile) {
  ASSERT_GE(files.size(), 6u);
  for (const std::string& path : files) {
    const std::string sound = bytes_of(path);
    for (std::size_t i = 0; i < 7 && !sound.empty(); ++i) {
      std::string bytes = sound;
      bytes[i * (sound.size() - 1) / 6] ^= 1;
      write(path, bytes);
      EXPECT_THAT(error(), AllOf(HasSubstr("DataLoss"), HasSubstr(path))) << "place " << i;
    }
    write(path, sound);
  }
  EXPECT_EQ(error(), "") << "all is as it was";
}

TEST_F(Damaged, EveryByteOfTheDescriptionCounts) {
  const std::string path = small.path + "/model.json", sound = bytes_of(path);
  for (std::size_t i = 0; i < sound.size(); i += 5) {
    std::string bytes = sound;
    bytes[i] ^= 4;
    write(path, bytes);
    EXPECT_THAT(message_of([&] { read_saved_model(small.path); }), HasSubstr("DataLoss")) << i;
  }
}

TEST_F(Damaged, ACutOrMissingFileIsTold) {
  for (const std::string& path : files) {
    const std::string sound = bytes_of(path);
    write(path, sound.empty() ? "more" : sound.substr(0, sound.size() / 2));
    EXPECT_THAT(error(), AllOf(HasSubstr("DataLoss"), HasSubstr(path)));
    fs::remove(path);
    EXPECT_THAT(error(), HasSubstr(path));
    write(path, sound);
  }
  EXPECT_THAT(message_of([&] { LoadedModel::load(small.folder.path()); }), HasSubstr("NotFound"));
}

TEST_F(Damaged, AnotherFormatNamesBothVersions) {
  const std::string path = small.path + "/model.json";
  std::string text = bytes_of(path);
  text.replace(text.find("\"format\": 1"), 11, "\"format\": 7");
  const std::size_t sum = text.rfind('"', text.size() - 5) + 1;
  text.replace(sum, 64, sha256(text.substr(0, sum)));
  write(path, text);
  EXPECT_THAT(error(), AllOf(HasSubstr("Unimplemented"), HasSubstr("format 7"),
                             HasSubstr("reads format 1")));
}

}  // namespace
}  // namespace cairn::testing
