#include "tools/launch/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "core/base/error.h"
#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {

bool ends_soon(int pidfd) {
  pollfd wait{.fd = pidfd, .events = POLLIN};
  return ::poll(&wait, 1, 30'000) == 1;
}

ChildProcess shell(const std::string& script, const std::string& output = "/dev/null") {
  return ChildProcess({.arguments = {"sh", "-c", script},
                       .environment = {"CAIRN_TEST_WORD=stone"},
                       .output_file = output});
}

TEST(ChildProcess, TellsTheStatusItEndedWith) {
  EXPECT_EQ(shell("exit 7").wait().str(), "exit status 7");
  EXPECT_EQ(shell("exit 7").wait().shell_code(), 7);
  EXPECT_EQ(shell("kill -KILL $$").wait().str(), "killed by SIGKILL");
  EXPECT_EQ(shell("kill -TERM $$").wait().shell_code(), 128 + SIGTERM);
}

TEST(ChildProcess, PollIsEmptyUntilItHasEnded) {
  ChildProcess child = shell("exec sleep 600");

  EXPECT_FALSE(child.poll().has_value());
  child.send(SIGTERM);
  ASSERT_TRUE(ends_soon(child.pidfd()));
  EXPECT_EQ(child.poll().value().signal, SIGTERM);
}

TEST(ChildProcess, AppendsItsOutputAndSeesTheEnvironmentGiven) {
  TempFolder folder;
  std::string log = folder.path() + "/log";

  shell("echo $CAIRN_TEST_WORD; echo wrong >&2", log).wait();
  shell("echo again", log).wait();

  EXPECT_EQ(folder.read("log"), "stone\nwrong\nagain\n");
}

TEST(ChildProcess, AProgramThatCannotBeRunIsNamed) {
  TempFolder folder;
  std::ofstream(folder.path() + "/text") << "not a program";
  try {
    ChildProcess child({.arguments = {"/no/such/program"}});
    FAIL();
  } catch (const NotFoundError& error) {
    EXPECT_STREQ(error.what(), "cannot start /no/such/program: No such file or directory");
  }
  EXPECT_THROW(ChildProcess({.arguments = {folder.path() + "/text"}}), PermissionDeniedError);
  EXPECT_THROW(ChildProcess(Command{}), InvalidArgumentError);
}

TEST(ChildProcess, TheDestructorEndsTheWholeGroup) {
  TempFolder folder;
  int grandchild = -1;
  {
    // The named pipe delivers the grandchild's process id once it runs.
    std::string fifo = folder.path() + "/fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    ChildProcess child = shell("sleep 600 & echo $! > " + fifo + "; wait");
    int pid = 0;
    std::ifstream(fifo) >> pid;
    ASSERT_GT(pid, 0);
    grandchild = open_pidfd(pid);
    ASSERT_GE(grandchild, 0);
  }
  EXPECT_TRUE(ends_soon(grandchild));
  ::close(grandchild);
}

TEST(ChildProcess, DiesWithTheThreadThatStartedIt) {
  std::optional<ChildProcess> child;
  std::thread([&] { child.emplace(shell("exec sleep 600")); }).join();

  ASSERT_TRUE(ends_soon(child->pidfd()));
  EXPECT_EQ(child->poll().value().signal, SIGKILL);
}

TEST(LastLines, GivesTheEndOfAFileAndNothingOfAnAbsentOne) {
  TempFolder folder;
  std::ofstream(folder.path() + "/log") << "one\ntwo\nthree\n";

  EXPECT_EQ(last_lines(folder.path() + "/log", 2), "two\nthree");
  EXPECT_EQ(last_lines(folder.path() + "/log", 9), "one\ntwo\nthree");
  EXPECT_EQ(last_lines(folder.path() + "/none", 2), "");
}

}  // namespace
}  // namespace cairn::tools
