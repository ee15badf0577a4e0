// The command itself, with scripts in the servers' place.
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {
using testing::HasSubstr;

class UpTest : public testing::Test {
 protected:
  UpTest() {
    folder_.script("cairn-ps", kServe);
    folder_.script("cairn-worker", kServe);
    ::mkfifo((folder_.path() + "/fifo").c_str(), 0600);
  }
  ChildProcess up(std::vector<std::string> more) {
    std::vector<std::string> arguments{CAIRN_PROGRAM,  "up",    "--programs",
                                       folder_.path(), "--dir", folder_.path() + "/run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return ChildProcess({.arguments = arguments, .output_file = folder_.path() + "/output"});
  }
  ExitStatus end_of(ChildProcess& child) { return end_in_time(child, 30'000, output()); }
  std::string output() const { return folder_.read("output"); }
  // The program's first word. Once the test has read it, the cluster runs.
  std::string first_word() {
    std::string word;
    std::ifstream(folder_.path() + "/fifo") >> word;
    return word;
  }
  std::vector<pid_t> servers() const {
    std::vector<pid_t> out;
    const Json description = parse_json(folder_.read("run/cluster.json"), "run/cluster.json");
    for (const auto& task : description.at("tasks"))
      if (task["role"] != "chief") out.push_back(task["pid"]);
    return out;
  }
  std::string tell() const { return " > " + folder_.path() + "/fifo"; }

  TempFolder folder_;
};

TEST_F(UpTest, TheProgramsStatusIsItsOwn) {
  ChildProcess run = up({"--", "sh", "-c", "exit 5"});
  EXPECT_EQ(end_of(run).code, 5) << output();
}

TEST_F(UpTest, AProgramThatWasKilledIsStartedAgainWithItsJournal) {
  ChildProcess run =
      up({"--", "sh", "-c",
          "echo start $CAIRN_RESTARTS of $CAIRN_JOURNAL; [ $CAIRN_RESTARTS -lt 2 ] && kill -9 $$; "
          "exit 3"});
  EXPECT_EQ(end_of(run).code, 3) << output();
  const std::string journal = " of " + folder_.path() + "/run/journal";
  EXPECT_THAT(output(),
              testing::AllOf(HasSubstr("start 0" + journal), HasSubstr("start 1" + journal),
                             HasSubstr("start 2" + journal), HasSubstr("killed by SIGKILL"),
                             HasSubstr("started again")));
}

TEST_F(UpTest, AProgramIsStartedAgainAsOftenAsTheCommandLineSays) {
  ChildProcess run = up({"--restarts", "1", "--", "sh", "-c", "echo begun; kill -9 $$"});
  EXPECT_EQ(end_of(run).code, 137) << output();
  const std::string said = output();
  EXPECT_NE(said.find("begun"), said.rfind("begun"));
  EXPECT_THAT(said, HasSubstr("started again 1 times before"));
}

TEST_F(UpTest, AProgramThatIsAskedToEndIsNotStartedAgain) {
  ChildProcess run =
      up({"--", "sh", "-c",
          "trap 'kill -9 $$' TERM; echo up" + tell() + "; while :; do sleep 0.01; done"});
  ASSERT_EQ(first_word(), "up");
  ::kill(run.pid(), SIGTERM);
  EXPECT_EQ(end_of(run).code, 137) << output();
  EXPECT_THAT(output(), testing::Not(HasSubstr("started again")));
}

TEST_F(UpTest, TheProgramIsTheChiefOfTheCluster) {
  ChildProcess run = up(
      {"--ps", "1", "--workers", "3", "--", "sh", "-c", "echo $TF_CONFIG; cat $CAIRN_TOKEN_FILE"});
  EXPECT_EQ(end_of(run).code, 0);
  EXPECT_THAT(output(), HasSubstr(R"("task":{"type":"chief","index":0})"));
}

TEST_F(UpTest, SigtermIsPassedOnAndNoServerIsLeft) {
  ChildProcess run =
      up({"--", "sh", "-c",
          "trap 'exit 9' TERM; echo up" + tell() + "; while :; do sleep 0.01; done"});
  ASSERT_EQ(first_word(), "up");
  auto pids = servers();
  ASSERT_EQ(pids.size(), 4u);

  ::kill(run.pid(), SIGTERM);

  EXPECT_EQ(end_of(run).code, 9) << output();
  for (pid_t pid : pids) EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(UpTest, SigkillOfTheSupervisorEndsTheServersAndTheProgram) {
  ChildProcess run = up({"--", "sh", "-c", "echo $$" + tell() + "; exec sleep 600"});
  std::vector<pid_t> pids = {std::stoi(first_word())};
  for (pid_t pid : servers()) pids.push_back(pid);
  ASSERT_EQ(pids.size(), 5u);
  std::vector<int> ends;
  for (pid_t pid : pids) ends.push_back(open_pidfd(pid));

  ::kill(run.pid(), SIGKILL);

  for (int fd : ends) {
    pollfd wait{.fd = fd, .events = POLLIN};
    EXPECT_EQ(::poll(&wait, 1, 30'000), 1);
    ::close(fd);
  }
}

TEST_F(UpTest, AServerThatCannotStayUpEndsTheRunWithItsLastWordsAndLetsTheProgramEndByItself) {
  folder_.script("cairn-worker", "echo no such device >&2; exit 4");

  ChildProcess run = up({"--ps", "1", "--workers", "1", "--", "sh", "-c",
                         "trap 'echo saved all; exit 0' TERM; while :; do sleep 0.01; done"});

  EXPECT_EQ(end_of(run).code, 1);
  EXPECT_THAT(output(), testing::AllOf(HasSubstr("worker 0"), HasSubstr("exit status 4"),
                                       HasSubstr("no such device"), HasSubstr("saved all")));
}

TEST_F(UpTest, WithoutAProgramItServesUntilItIsTold) {
  folder_.script("cairn-ps", "echo serving" + tell() + "\n" + kServe);
  ChildProcess run = up({"--ps", "1"});
  ASSERT_EQ(first_word(), "serving");

  ::kill(run.pid(), SIGINT);

  EXPECT_EQ(end_of(run).code, 0) << output();
  EXPECT_THAT(output(), HasSubstr("export TF_CONFIG='"));
}

TEST_F(UpTest, AShareOfTheRunIsRefusedSinceAForeignProgramTellsNoProgress) {
  ChildProcess run = up({"--kill", "ps:0@40%", "--", "true"});
  EXPECT_EQ(end_of(run).code, 1);
  EXPECT_THAT(output(), testing::AllOf(HasSubstr("ps:0@40%"), HasSubstr("@12s")));
}

TEST_F(UpTest, AProgramThatIsNotThereIsNamed) {
  ChildProcess run = up({"--", "/no/such/program"});
  EXPECT_EQ(end_of(run).code, 1);
  EXPECT_THAT(output(), HasSubstr("cannot start /no/such/program"));
}

}  // namespace
}  // namespace cairn::tools
