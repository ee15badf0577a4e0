// Real processes tell on SIGUSR1 what they wait for, and a second run leaves the first one alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <filesystem>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {
using testing::AllOf;
using testing::HasSubstr;

constexpr int kWaitMs = 100, kWaits = 2000;

class Waits : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  ChildProcess start(std::vector<std::string> arguments, const std::string& output) {
    arguments[0] = std::string(CAIRN_PROGRAMS) + "/" + arguments[0];
    return ChildProcess(
        {.arguments = std::move(arguments), .environment = {}, .output_file = file(output)});
  }
  // A run that lasts until it is interrupted.
  ChildProcess start_run() {
    return start({"cairn", "train", "examples/adult.toml", "--epochs", "100000", "--dir",
                  file("run"), "--report", "/dev/null"},
                 "output");
  }
  // Looks at the file until the text is there, as long as the child runs.
  bool comes(ChildProcess& child, const std::string& name, const std::string& text) {
    pollfd ended{.fd = child.pidfd(), .events = POLLIN};
    for (int i = 0; i < kWaits; ++i) {
      if (folder_.read(name).find(text) != std::string::npos) return true;
      if (::poll(&ended, 1, kWaitMs) != 0)
        return folder_.read(name).find(text) != std::string::npos;
    }
    return false;
  }
  int end_of(ChildProcess& child) {
    return end_in_time(child, kWaitMs * kWaits, folder_.read("output")).shell_code();
  }
  pid_t pid_of(const std::string& role) const {
    const Json cluster = parse_json(folder_.read("run/cluster.json"), "run/cluster.json");
    for (const auto& task : cluster["tasks"])
      if (task["role"] == role) return task["pid"].get<pid_t>();
    return 0;
  }

  TempFolder folder_;
};

TEST_F(Waits, EveryRoleTellsWhatItsLoopsWaitForAndGoesOn) {
  ChildProcess run = start_run();
  ASSERT_TRUE(comes(run, "output", "step ")) << folder_.read("output");
  ASSERT_EQ(::kill(pid_of("ps"), SIGUSR1), 0);
  ASSERT_EQ(::kill(pid_of("worker"), SIGUSR1), 0);
  run.send(SIGUSR1);
  EXPECT_TRUE(comes(run, "run/logs/ps-0.log", "waits: control: accepting at "));
  EXPECT_TRUE(comes(run, "run/logs/ps-0.log", "waits: shard 0: watching a connection"));
  EXPECT_TRUE(comes(run, "run/logs/worker-0.log", "waits: lane 0: "));
  EXPECT_THAT(folder_.read("run/logs/worker-0.log"), HasSubstr("\"closures\":["));
  EXPECT_TRUE(comes(run, "run/logs/chief-0.log", "waits: the coordinator's loop: "));
  EXPECT_THAT(folder_.read("run/logs/chief-0.log"),
              AllOf(HasSubstr("/job:ps/task:0 at "), HasSubstr("waits: closure ")));
  run.send(SIGINT);
  EXPECT_EQ(end_of(run), 130) << folder_.read("output");
}

TEST_F(Waits, ASecondRunInTheFolderOfALivingOneIsRefusedAndToldWhoHasIt) {
  ChildProcess run = start_run();
  ASSERT_TRUE(comes(run, "output", "step ")) << folder_.read("output");
  ChildProcess other = start({"cairn", "train", "examples/adult.toml", "--dir", file("other"),
                              "--checkpoints", file("run/checkpoints")},
                             "second");
  EXPECT_EQ(end_of(other), 1);
  EXPECT_THAT(folder_.read("second"), AllOf(HasSubstr("another run saves its checkpoints in "),
                                            HasSubstr("pid "), HasSubstr(" on host ")));
  run.send(SIGINT);
  EXPECT_EQ(end_of(run), 130);
}

}  // namespace
}  // namespace cairn::tools
