// What the programs say to their command lines, as a shell sees it.
#include <gmock/gmock.h>
#include <signal.h>

#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/child_process.h"

namespace cairn::tools {
namespace {
using testing::HasSubstr;

struct Said {
  int code = -1;
  std::string text;
};

Said say(const std::string& program, std::vector<std::string> arguments) {
  const TempFolder folder;
  arguments.insert(arguments.begin(), std::string(CAIRN_PROGRAMS) + "/" + program);
  ChildProcess child({.arguments = arguments, .output_file = folder.path() + "/output"});
  const int code = end_in_time(child, 60'000, program).shell_code();
  return {code, folder.read("output")};
}

class EachProgram : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Programs, EachProgram,
                         testing::Values("cairn", "cairn-ps", "cairn-worker", "cairn-coordinator"),
                         [](const auto& info) {
                           return info.param == "cairn" ? "cairn" : info.param.substr(6);
                         });

TEST_P(EachProgram, TellsItsVersion) {
  const Said said = say(GetParam(), {"--version"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.text, GetParam() + " " CAIRN_VERSION "\n");
}

TEST_P(EachProgram, EndsWithTwoForWrongUsageAndZeroForHelp) {
  const Said wrong = say(GetParam(), {"--hepl"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.text, HasSubstr(GetParam() + ": \"--hepl\" is no flag of " + GetParam() +
                                    "; did you mean \"--help\"?"));
  EXPECT_EQ(say(GetParam(), {"--help"}).code, 0);
}

TEST(CommandLine, NamesTheNearestCommandAndTheNearestFlagOfTheCommand) {
  const Said trian = say("cairn", {"trian", "job.toml"});
  EXPECT_EQ(trian.code, 2);
  EXPECT_THAT(trian.text, HasSubstr("\"trian\" is no command of cairn; did you mean \"train\"?"));
  EXPECT_THAT(say("cairn", {"ckpt", "lss"}).text,
              HasSubstr("\"lss\" is no command of ckpt; did you mean \"ls\"?"));
  EXPECT_THAT(say("cairn", {"train", "job.toml", "--repot=x"}).text,
              HasSubstr("\"--repot\" is no flag of train; did you mean \"--report\"?"));
}

TEST(CommandLine, EveryOtherWrongUsageEndsWithTwoAsWell) {
  for (const auto& [program, arguments] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"cairn", {}},
           {"cairn", {"train"}},
           {"cairn", {"train", "job.toml", "--ps", "many"}},
           {"cairn-ps", {"--shards", "0"}},
           {"cairn-coordinator", {}}}) {
    const Said said = say(program, arguments);
    EXPECT_EQ(said.code, 2) << said.text;
    EXPECT_THAT(said.text, HasSubstr(program + " --help tells what there is"));
  }
}

}  // namespace
}  // namespace cairn::tools
