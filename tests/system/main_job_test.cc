// The main job with real processes: from one command, through kills, by hand, and back from a
// checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <set>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"
#include "tools/launch/reserved_port.h"

namespace cairn::tools {
namespace {
using testing::HasSubstr;

constexpr int kPatienceMs = 200'000;

class MainJob : public testing::Test {
 protected:
  std::string program(const std::string& name) const {
    return std::string(CAIRN_PROGRAMS) + "/" + name;
  }
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  ChildProcess start(std::vector<std::string> arguments, std::vector<std::string> environment = {},
                     const std::string& output = "output") {
    arguments[0] = program(arguments[0]);
    return ChildProcess({.arguments = arguments,
                         .environment = std::move(environment),
                         .output_file = file(output)});
  }
  // The exit status, as a shell has it.
  int end_of(ChildProcess& child) {
    return end_in_time(child, kPatienceMs, folder_.read("output")).shell_code();
  }
  int run(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    ChildProcess child = start(std::move(arguments), std::move(environment));
    return end_of(child);
  }
  int train(std::vector<std::string> more, std::vector<std::string> environment = {}) {
    std::vector<std::string> arguments{"cairn",     "train",    "examples/adult.toml", "--dir",
                                       file("run"), "--report", file("report.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(std::move(arguments), std::move(environment));
  }
  Json report() const { return parse_json(folder_.read("report.json"), "report.json"); }
  std::string output() const { return folder_.read("output"); }

  TempFolder folder_;
};

TEST_F(MainJob, TrainsOnRealDataAndLeavesASoundCheckpoint) {
  ASSERT_EQ(train({"--epochs", "2"}), 0) << output();
  Json outcome = report();
  EXPECT_GE(outcome["metrics"]["auc"].get<double>(), 0.90);
  EXPECT_EQ(outcome["lost_updates"], 0);
  EXPECT_EQ(outcome["retried_closures"], 0);
  EXPECT_EQ(run({"cairn", "ckpt", "verify", file("run/checkpoints")}), 0) << output();
  EXPECT_EQ(run({"cairn", "ckpt", "show", file("run/checkpoints")}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("deep/education"));
}

TEST_F(MainJob, LearnsAsWellInBfloat16) {
  ASSERT_EQ(train({"--epochs", "2", "--wire", "bfloat16", "--arithmetic", "bfloat16", "--transport",
                   "tcp"}),
            0)
      << output();
  EXPECT_GE(report()["metrics"]["auc"].get<double>(), 0.90);
  EXPECT_EQ(report()["cluster"]["wire"], "bfloat16");
}

TEST_F(MainJob, LeavesATraceOfEveryProcessWhereOneIsWanted) {
  const std::string folder = file("traces");
  std::filesystem::create_directory(folder);
  ASSERT_EQ(train({"--steps", "50"}, {"CAIRN_TRACE=" + folder}), 0) << output();
  std::map<std::string, std::set<std::string>> spans;  // by program
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    for (const Json& event : parse_json(folder_.read("traces/" + name), name))
      spans[name.substr(0, name.rfind('-'))].insert(event["name"].get<std::string>());
  }
  EXPECT_THAT(spans["cairn-worker"],
              testing::IsSupersetOf({"read data", "pull", "matmul", "push"}));
  EXPECT_THAT(spans["cairn-ps"], testing::IsSupersetOf({"gather for a pull", "apply a push"}));
}

TEST_F(MainJob, SurvivesTheKillOfAWorkerAndOfAPs) {
  ASSERT_EQ(train({"--epochs", "3", "--kill", "worker:1@40%", "--kill", "ps:0@60%"}), 0)
      << output();
  Json outcome = report();
  EXPECT_GE(outcome["metrics"]["auc"].get<double>(), 0.90);
  EXPECT_EQ(outcome["restarts"], Json({{"ps", 1}, {"worker", 1}}));
  ASSERT_EQ(outcome["losses"].size(), 2u);
  EXPECT_EQ(outcome["losses"][0]["task"], "/job:worker/task:1");
  EXPECT_EQ(outcome["losses"][1]["task"], "/job:ps/task:0");
  EXPECT_GT(outcome["losses"][1]["first_push_after_seconds"].get<double>(), 0.0);
}

TEST_F(MainJob, GoesOnFromACheckpointOntoAnotherNumberOfPs) {
  ASSERT_EQ(train({"--epochs", "1"}), 0) << output();
  std::int64_t steps = report()["steps"];
  ASSERT_EQ(train({"--epochs", "2", "--ps", "3", "--resume", "latest"}), 0) << output();
  EXPECT_EQ(report()["examples"].get<std::int64_t>(),
            (report()["steps"].get<std::int64_t>() - steps) * 256);
  EXPECT_THAT(output(), HasSubstr("resumed"));
  EXPECT_GE(report()["metrics"]["auc"].get<double>(), 0.90);
}

TEST_F(MainJob, StopsWithASaveWhenInterrupted) {
  ChildProcess child =
      start({"cairn", "train", "examples/adult.toml", "--epochs", "500", "--evaluate-every", "100",
             "--dir", file("run"), "--report", file("report.json")});
  pollfd wait{.fd = child.pidfd(), .events = POLLIN};
  for (int i = 0;
       i < 600 && output().find("test data") == std::string::npos && ::poll(&wait, 1, 100) == 0;
       ++i) {
  }
  child.send(SIGINT);
  EXPECT_EQ(end_of(child), 130) << output();
  EXPECT_FALSE(report()["completed"].get<bool>());
  EXPECT_EQ(run({"cairn", "ckpt", "verify", report()["checkpoint"].get<std::string>()}), 0)
      << output();
  Json cluster = parse_json(folder_.read("run/cluster.json"), "run/cluster.json");
  for (const auto& task : cluster["tasks"])
    if (task["role"] != "chief" && task["pid"].get<pid_t>() > 0) {
      EXPECT_NE(::kill(task["pid"].get<pid_t>(), 0), 0) << task;
    }
}

TEST_F(MainJob, TheExampleProgramDoesTheSameUnderCairnUp) {
  ASSERT_EQ(run({"cairn", "up", "--ps", "2", "--workers", "2", "--dir", file("run"), "--",
                 program("wide_deep"), "examples/data/adult", file("checkpoints")}),
            0)
      << output();
  auto at = output().find("test AUC ");
  ASSERT_NE(at, std::string::npos) << output();
  EXPECT_GE(std::stod(output().substr(at + 9)), 0.90);
}

TEST_F(MainJob, RunsOnServersStartedByHand) {
  ReservedPort ps0, ps1, worker0, chief;
  Json cluster{{"ps", {ps0.address(), ps1.address()}},
               {"worker", {worker0.address()}},
               {"chief", {chief.address()}}};
  auto config = [&](const std::string& type, int index) {
    return std::vector<std::string>{
        "TF_CONFIG=" +
        json_text({{"cluster", cluster}, {"task", {{"type", type}, {"index", index}}}})};
  };
  folder_.write("token", "secret\n");
  auto joining = [&](std::vector<std::string> program) {
    for (const std::string& flag : {std::string("--cluster-id"), std::string("mine"),
                                    std::string("--token-file"), file("token")})
      program.push_back(flag);
    return program;
  };
  ChildProcess servers[] = {start(joining({"cairn-ps"}), config("ps", 0), "ps-0"),
                            start(joining({"cairn-ps"}), config("ps", 1), "ps-1"),
                            start(joining({"cairn-worker"}), config("worker", 0), "worker-0")};
  EXPECT_EQ(run(joining({"cairn-coordinator", "examples/adult.toml", "--epochs", "1", "--dir",
                         file("run"), "--report", file("report.json")}),
                config("chief", 0)),
            0)
      << output() << folder_.read("ps-0");
  EXPECT_EQ(run({"cairn", "ckpt", "verify", file("run")}), 0) << output();
  EXPECT_GE(report()["metrics"]["auc"].get<double>(), 0.88);
  for (auto& server : servers) {
    server.send(SIGTERM);
    EXPECT_EQ(end_of(server), 0);
  }
}

TEST_F(MainJob, AnUnknownKeyInAJobFileIsNamedWithTheNearestKnownOne) {
  folder_.write("job.toml", "[data]\ntrain = \"x.csv\"\nbatchsize = 3\n");
  EXPECT_EQ(run({"cairn", "train", file("job.toml")}), 1);
  EXPECT_THAT(output(), HasSubstr("job.toml:3: unknown key \"data.batchsize\""));
  EXPECT_THAT(output(), HasSubstr("\"batch\""));
}

TEST_F(MainJob, AMissingDataFileIsNamed) {
  folder_.write("job.toml",
                "[data]\ntrain = \"nowhere.csv\"\n[data.csv]\ncolumns = [\"a:float32\", "
                "\"b:float32\"]\nlabel = {column = \"b\"}\n[features]\nnumeric = [\"a\"]\n");
  EXPECT_EQ(run({"cairn", "train", file("job.toml")}), 1);
  EXPECT_THAT(output(), HasSubstr("nowhere.csv"));
}

}  // namespace
}  // namespace cairn::tools
