#include "strategy/servers/journal_of_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/json.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

class JournalOfEnvironment : public ::testing::Test {
 protected:
  JournalOfEnvironment() {
    ::setenv("CAIRN_JOURNAL", folder_.path().c_str(), 1);
    begin_start(0);
  }
  ~JournalOfEnvironment() override {
    ::unsetenv("CAIRN_JOURNAL");
    ::unsetenv("CAIRN_RESTARTS");
  }
  static void begin_start(int number) {
    ::setenv("CAIRN_RESTARTS", std::to_string(number).c_str(), 1);
  }
  static std::string folder_of(const Consistency& consistency = Consistency::asynchronous()) {
    return journal_of_environment(consistency).folder;
  }
  // As a coordinator writes there.
  void write_there() const {
    std::filesystem::create_directory(run());
    std::ofstream(run() + "/file") << "events";
  }
  bool is_there() const { return std::filesystem::exists(run() + "/file"); }
  std::string run() const { return folder_.path() + "/run"; }

  tools::TempFolder folder_;
};

TEST_F(JournalOfEnvironment, IsNotThereWithoutTheVariable) {
  ::unsetenv("CAIRN_JOURNAL");
  EXPECT_EQ(folder_of(), "");
}

TEST_F(JournalOfEnvironment, IsOneForTheProgramThatIsStartedAgain) {
  EXPECT_EQ(folder_of(), run());
  write_there();
  begin_start(1);
  EXPECT_EQ(folder_of(), run());
  EXPECT_TRUE(is_there());
}

TEST_F(JournalOfEnvironment, LetsUpdatesInRoundsDoWithoutOne) {
  EXPECT_EQ(folder_of(Consistency::synchronous(0)), "");
  EXPECT_EQ(folder_of(), run());  // and they count for nothing
}

TEST_F(JournalOfEnvironment, IsNoneForTheSecondStrategyOfAStartNorIsTheFirstGoneOnWith) {
  EXPECT_EQ(folder_of(), run());
  write_there();
  EXPECT_EQ(folder_of(), "");
  EXPECT_TRUE(is_there());  // the first one may still be at work
  begin_start(1);
  EXPECT_EQ(folder_of(), run());
  EXPECT_FALSE(is_there());
}

TEST_F(JournalOfEnvironment, IsBegunAnewByAnotherCommand) {
  EXPECT_EQ(folder_of(), run());
  write_there();
  const std::string path = folder_.path() + "/program.json";
  Json program = parse_json(folder_.read("program.json"), path);
  program["command"] = "another\nprogram\n";
  folder_.write("program.json", json_text(program));
  begin_start(1);
  EXPECT_EQ(folder_of(), run());
  EXPECT_FALSE(is_there());
}

}  // namespace
}  // namespace cairn
