// The programs' answers to their command lines, as a shell sees them.
#include <gmock/gmock.h>
#include <signal.h>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

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
  ChildProcess child({.arguments = arguments,
                      .environment = {"CAIRN_CUDA_LIBRARY=none"},  // on machines with a GPU too
                      .output_file = folder.path() + "/output"});
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

// ---- devices ----

// It ends at once, since its parent has: Linux numbers no process so high.
Said worker_on(const std::string& device) {
  return say("cairn-worker",
             {"--listen", "127.0.0.1:0", "--parent-pid", "999999999", "--device", device});
}

std::size_t lines_with(const std::string& words, const std::string& text) {
  std::size_t lines = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++lines;
  return lines;
}

TEST(Devices, AWorkerSaysInOneLineOnWhatItComputesAndWhyOnNoGpu) {
  const Said automatic = worker_on("auto");
  EXPECT_EQ(automatic.code, 0) << automatic.text;
  EXPECT_THAT(automatic.text,
              HasSubstr("computes on the CPU; no GPU is used: CAIRN_CUDA_LIBRARY=none\n"));
  EXPECT_EQ(lines_with("computes on", automatic.text), 1u);
  const Said cpu = worker_on("cpu");
  EXPECT_THAT(cpu.text, HasSubstr("computes on the CPU\n"));
  EXPECT_EQ(lines_with("computes on", cpu.text), 1u);
}

TEST(Devices, AWorkerThatIsToUseAGpuAndHasNoneEndsWithTwoAndSaysWhy) {
  const Said all = worker_on("gpu");
  EXPECT_EQ(all.code, 2);
  EXPECT_THAT(all.text, HasSubstr("--device: there is no GPU to compute on: "
                                  "CAIRN_CUDA_LIBRARY=none; choose auto"));
  const Said one = worker_on("gpu:1");
  EXPECT_EQ(one.code, 2);
  EXPECT_THAT(one.text, HasSubstr("there is no device gpu:1: CAIRN_CUDA_LIBRARY=none"));
  for (const char* nonsense : {"tpu", "gpu:", "gpu:x", "gpu:-1", "GPU"}) {
    const Said said = worker_on(nonsense);
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.text, HasSubstr(str("no device \"", nonsense, "\" to choose")));
  }
}

TEST(Devices, AreListedWithWhatIsNotUsedAndWhy) {
  const Said said = say("cairn", {"devices"});
  EXPECT_EQ(said.code, 0);
  EXPECT_TRUE(said.text.starts_with("cpu ")) << said.text;
  EXPECT_THAT(said.text, HasSubstr(" logical processor"));
  EXPECT_THAT(said.text, HasSubstr("no GPU is used: CAIRN_CUDA_LIBRARY=none\n"));
  const Json listed = parse_json(say("cairn", {"devices", "--json"}).text, "the list");
  EXPECT_FALSE(listed["cpu"]["model"].get<std::string>().empty());
  EXPECT_GE(listed["cpu"]["processors"].get<int>(), 1);
  EXPECT_EQ(listed["gpus"], Json::array());
  EXPECT_EQ(listed["not_used"], "CAIRN_CUDA_LIBRARY=none");
}

TEST(Devices, AWorkerMayBeToldToRepeatBitForBit) {
  const Said said = say("cairn-worker", {"--listen", "127.0.0.1:0", "--parent-pid", "999999999",
                                         "--device", "cpu", "--deterministic"});
  EXPECT_EQ(said.code, 0) << said.text;
}

TEST(Devices, AGroupOfProgramsIsToldThatDevicesAreTheirs) {
  const Said said = say("cairn", {"up", "--workers", "2", "--device", "gpu", "--", "true"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("--device is of a cluster with ps"));
  const Said repeats = say("cairn", {"up", "--workers", "2", "--deterministic", "--", "true"});
  EXPECT_EQ(repeats.code, 1);
  EXPECT_THAT(repeats.text, HasSubstr("--deterministic is of a cluster with ps"));
}

}  // namespace
}  // namespace cairn::tools
