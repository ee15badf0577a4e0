// One job under every strategy, by the command itself: the same AUC, checkpoints that each takes
// over from another, and an end in order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kEndsWithinMs = 200'000;

class TrainStrategies : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  ChildProcess start(const std::string& command, std::vector<std::string> more) {
    std::vector<std::string> arguments{std::string(CAIRN_PROGRAMS) + "/cairn", command};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return ChildProcess({.arguments = arguments,
                         .environment = {"CAIRN_CUDA_LIBRARY=none"},  // on machines with a GPU too
                         .output_file = file("output")});
  }
  int end_of(ChildProcess& child) {
    return end_in_time(child, kEndsWithinMs, output()).shell_code();
  }
  ChildProcess start_training(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"examples/adult.toml", "--dir", file("run"), "--report",
                                       file("report.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start("train", std::move(arguments));
  }
  int train(const std::vector<std::string>& more) {
    ChildProcess child = start_training(more);
    return end_of(child);
  }
  int run(const std::string& command, std::vector<std::string> more) {
    ChildProcess child = start(command, std::move(more));
    return end_of(child);
  }
  Json report() const { return parse_json(folder_.read("report.json"), "report.json"); }
  std::string output() const { return folder_.read("output"); }
  double auc() const { return report()["metrics"]["auc"].get<double>(); }
  // Waits for a line of the run, or for its end.
  void await(ChildProcess& child, const std::string& text) {
    pollfd wait{.fd = child.pidfd(), .events = POLLIN};
    for (int i = 0; i < kEndsWithinMs / 20 && output().find(text) == std::string::npos &&
                    ::poll(&wait, 1, 20) == 0;
         ++i) {
    }
  }

  TempFolder folder_;
};

TEST_F(TrainStrategies, OneJobLearnsTheSameUnderEachOfThem) {
  ASSERT_EQ(train({"--epochs", "2", "--strategy", "one_device"}), 0) << output();
  const double wanted = auc();
  EXPECT_GE(wanted, 0.90);
  EXPECT_EQ(report()["strategy"]["kind"], "one_device");
  for (const char* kind : {"mirrored", "central_storage"}) {
    ASSERT_EQ(train({"--epochs", "2", "--strategy", kind, "--replicas", "2", "--overwrite"}), 0)
        << output();
    EXPECT_NEAR(auc(), wanted, 0.0005) << kind;
    EXPECT_EQ(report()["strategy"]["replicas"], 2);
    EXPECT_EQ(report()["cluster"], nullptr);
    EXPECT_EQ(report()["staleness"], nullptr);
  }
  ASSERT_EQ(
      train({"--epochs", "2", "--consistency", "bounded", "--max-staleness", "2", "--overwrite"}),
      0)
      << output();
  EXPECT_NEAR(auc(), wanted, 0.005);
  EXPECT_EQ(report()["strategy"]["max_staleness"], 2);
  EXPECT_LT(report()["staleness"]["max"].get<int>(), 4);  // 2 steps of 2 lanes
}

TEST_F(TrainStrategies, WorkersInRoundsLearnWhatOneDeviceDoes) {
  ASSERT_EQ(train({"--steps", "80", "--strategy", "one_device"}), 0) << output();
  const Json alone = report();
  ASSERT_EQ(train({"--steps", "80", "--consistency", "synchronous", "--overwrite"}), 0) << output();
  EXPECT_NEAR(auc(), alone["metrics"]["auc"].get<double>(), 1e-4);
  EXPECT_NEAR(report()["loss"].get<double>(), alone["loss"].get<double>(), 1e-4);
  EXPECT_EQ(report()["steps"], 80);
  EXPECT_EQ(report()["staleness"]["max"], 0);
  EXPECT_EQ(train({"--steps", "80", "--consistency", "synchronous", "--workers", "3", "--lanes",
                   "2", "--overwrite"}),
            1);
  EXPECT_THAT(output(), AllOf(HasSubstr("data.batch is 256"), HasSubstr("a multiple of 6")));
}

TEST_F(TrainStrategies, AnEpochEndsInTheSameModelWhetherItIsTrainedInOneRunOrInTwo) {
  ASSERT_EQ(train({"--steps", "80", "--strategy", "mirrored"}), 0) << output();
  const Json whole = report();
  ASSERT_EQ(train({"--steps", "40", "--strategy", "mirrored", "--overwrite", "--checkpoints",
                   file("parts"), "--evaluate-every", "20"}),
            0)
      << output();
  ASSERT_EQ(train({"--steps", "80", "--strategy", "mirrored", "--checkpoints", file("parts"),
                   "--resume", "latest"}),
            0)
      << output();
  EXPECT_THAT(output(), HasSubstr("at step 40"));
  EXPECT_EQ(report()["metrics"], whole["metrics"]);
  EXPECT_EQ(report()["examples"], 40 * 256);
}

TEST_F(TrainStrategies, ACheckpointGoesOnUnderAnotherStrategyAndWithNothingLeftToTrain) {
  ASSERT_EQ(train({"--steps", "40", "--strategy", "central_storage"}), 0) << output();
  ASSERT_EQ(train({"--steps", "80", "--resume", "latest"}), 0) << output();
  EXPECT_EQ(report()["steps"], 80);
  const double after = auc();
  ASSERT_EQ(train({"--steps", "80", "--resume", "latest", "--strategy", "one_device"}), 0)
      << output();
  EXPECT_EQ(report()["examples"], 0);
  EXPECT_NEAR(auc(), after, 1e-6);
  EXPECT_EQ(run("ckpt", {"verify", report()["checkpoint"].get<std::string>()}), 0) << output();

  // Parameter servers save the whole model without a step, too: twice, since the second run reads
  // the checkpoint that the first one saved.
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(train({"--steps", "80", "--resume", "latest", "--strategy", "parameter_server",
                     "--ps", "2", "--workers", "1"}),
              0)
        << output();
    EXPECT_EQ(report()["examples"], 0);
    EXPECT_NEAR(auc(), after, 1e-6);
  }
}

TEST_F(TrainStrategies, ARunInOneProcessSavesAndEndsWhenItIsInterrupted) {
  ChildProcess child =
      start_training({"--epochs", "500", "--evaluate-every", "50", "--strategy", "mirrored"});
  await(child, "test data");
  child.send(SIGINT);
  EXPECT_EQ(end_of(child), 130) << output();
  EXPECT_FALSE(report()["completed"].get<bool>());
  EXPECT_EQ(run("ckpt", {"verify", report()["checkpoint"].get<std::string>()}), 0) << output();
}

TEST_F(TrainStrategies, AGroupOfWorkersLearnsWhatOneDeviceDoesAndOnlyTheChiefWrites) {
  ASSERT_EQ(train({"--steps", "60", "--strategy", "one_device"}), 0) << output();
  const double wanted = auc();
  ASSERT_EQ(train({"--steps", "60", "--strategy", "multi_worker_mirrored", "--workers", "2",
                   "--overwrite"}),
            0)
      << output();
  EXPECT_NEAR(auc(), wanted, 0.0005);
  EXPECT_EQ(report()["cluster"]["workers"], 2);
  ASSERT_EQ(report()["collectives"].size(), 2u);
  EXPECT_EQ(report()["collectives"][0]["calls"], report()["collectives"][1]["calls"]);
  EXPECT_GT(report()["collectives"][1]["bytes"].get<std::int64_t>(), 60 * 1000);
  EXPECT_EQ(run("ckpt", {"verify", file("run/checkpoints")}), 0) << output();
}

TEST_F(TrainStrategies, WorkersOfSeveralReplicasLearnWhatOneDeviceDoesAndEachIsCounted) {
  ASSERT_EQ(train({"--steps", "60", "--strategy", "one_device"}), 0) << output();
  const double wanted = auc();
  ASSERT_EQ(train({"--steps", "60", "--strategy", "multi_worker_mirrored", "--workers", "2",
                   "--replicas", "2", "--overwrite"}),
            0)
      << output();
  EXPECT_THAT(output(), HasSubstr("multi_worker_mirrored: 2 workers of 2 replicas"));
  EXPECT_NEAR(auc(), wanted, 0.0005);
  const Json told = report();
  EXPECT_EQ(told["strategy"]["replicas"], 4);
  ASSERT_EQ(told["collectives"].size(), 4u);
  for (const Json& each : told["collectives"]) {
    EXPECT_EQ(each["calls"], told["collectives"][0]["calls"]);
    EXPECT_GT(each["bytes"].get<std::int64_t>(), 60 * 1000);
  }
  EXPECT_EQ(run("ckpt", {"verify", file("run/checkpoints")}), 0) << output();
}

TEST_F(TrainStrategies, AGroupThatLosesAWorkerGoesOnFromItsNewestCheckpointAndEndsInOrder) {
  ChildProcess child =
      start_training({"--epochs", "500", "--evaluate-every", "50", "--checkpoint-every", "20",
                      "--strategy", "multi_worker_mirrored", "--workers", "3"});
  await(child, "step 50, test data");
  const Json cluster = parse_json(folder_.read("run/cluster.json"), "run/cluster.json");
  ::kill(cluster["tasks"][2]["pid"].get<pid_t>(), SIGKILL);
  await(child, "step 150, test data");
  EXPECT_THAT(output(), AllOf(HasSubstr("/job:worker/task:2"), HasSubstr("killed by SIGKILL"),
                              HasSubstr("all 3 workers are started again"),
                              HasSubstr("resumed from " + file("run/checkpoints/"))));
  child.send(SIGINT);
  EXPECT_EQ(end_of(child), 130) << output();
  EXPECT_THAT(output(), HasSubstr("interrupted after"));
  EXPECT_EQ(run("ckpt", {"verify", file("run/checkpoints")}), 0) << output();
}

TEST_F(TrainStrategies, WhatOnlyServersHaveIsRefusedBeforeAnythingIsDone) {
  EXPECT_EQ(train({"--strategy", "mirrored", "--kill", "ps:0@40%"}), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("--kill ps:0@40%"), HasSubstr("no ps or worker"),
                              Not(HasSubstr("the run's folder"))));
}

TEST_F(TrainStrategies, AGpuThatIsAskedForAndIsNotThereEndsTheRunAndIsExplained) {
  for (const char* kind : {"parameter_server", "one_device", "multi_worker_mirrored"}) {
    EXPECT_EQ(train({"--strategy", kind, "--device", "gpu", "--overwrite"}), 1) << kind;
    EXPECT_THAT(output(), HasSubstr("there is no GPU to compute on: CAIRN_CUDA_LIBRARY=none"))
        << kind;
    EXPECT_THAT(output(), Not(HasSubstr("times in a row"))) << kind;
  }
}

TEST_F(TrainStrategies, OneProcessSaysOnWhatItComputesWhereThatWasChosen) {
  EXPECT_EQ(train({"--strategy", "one_device", "--device", "auto", "--steps", "3"}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("it computes on the CPU; no GPU is used: CAIRN_CUDA_LIBRARY"));
}

}  // namespace
}  // namespace cairn::tools
