#include "rpc/server/server_flags.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/processors.h"
#include "rpc/net/hello.h"

namespace cairn::rpc {
namespace {

using testing::HasSubstr;

// A worker's flags under this TF_CONFIG.
ServerFlags parsed(std::vector<std::string> arguments, const std::string& config = "") {
  ServerProgram program;
  program.role = Role::kWorker;
  program.name = "cairn-worker";
  program.threads_flag = "--lanes";
  program.threads_auto = true;
  arguments.insert(arguments.begin(), "cairn-worker");
  std::vector<char*> argv;
  for (std::string& each : arguments) argv.push_back(each.data());
  ::setenv("TF_CONFIG", config.c_str(), 1);
  const ParsedFlags flags = parse_server_flags(static_cast<int>(argv.size()), argv.data(), program);
  ::unsetenv("TF_CONFIG");
  EXPECT_TRUE(flags.run);
  return flags.flags;
}

// The expected share of the processors of the machine that runs the test.
ThreadChoice share(std::size_t tasks, std::size_t workers = 1) {
  return share_of_processors(usable_processors(), tasks, lanes_bound(workers));
}

TEST(ServerFlags, WithoutAnyAServerHasAllProcessors) {
  for (const auto& flags :
       {parsed({"--listen", "h:1"}), parsed({"--listen", "h:1", "--lanes", "auto"})}) {
    EXPECT_EQ(flags.threads, share(1).threads);
    EXPECT_TRUE(flags.threads_chosen);
    EXPECT_EQ(flags.threads_why, share(1).why);
  }
}

TEST(ServerFlags, ProcessorsAreSharedByThePsAndWorkersOfTheHost) {
  const std::string config =
      R"({"cluster": {"chief": ["h:1"], "ps": ["h:2", "other:2"], "worker": ["h:3", "h:4"]}, )"
      R"("task": {"type": "worker", "index": 1}})";
  EXPECT_EQ(parsed({}, config).threads_why, share(3, 2).why);
  EXPECT_EQ(parsed({"--listen", "0.0.0.0:4"}, config).threads_why, share(3, 2).why);
  EXPECT_EQ(parsed({"--listen", "h:9", "--host-tasks", "5"}).threads_why, share(5).why);
}

TEST(ServerFlags, ANumberIsTaken) {
  const ServerFlags flags = parsed({"--listen", "h:1", "--lanes", "7"});
  EXPECT_EQ(flags.threads, 7u);
  EXPECT_FALSE(flags.threads_chosen);
  EXPECT_THAT(flags.threads_why, HasSubstr("--lanes"));
}

}  // namespace
}  // namespace cairn::rpc
