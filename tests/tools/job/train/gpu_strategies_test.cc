// Strategies whose replicas compute on GPUs, fake ones: the values that they come to on the CPU.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/tools/gpu_run.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ReplicasOnGpus : public RunOnAGpu {
 protected:
  // The loss of the last steps and the metrics, of a job trained on so many GPUs; 0: on the CPU.
  struct Learned {
    double loss = 0, logloss = 0;
  };
  Learned train(int gpus, std::vector<std::string> arguments) {
    folder_.write("output", "");
    ChildProcess run = begin(gpus, std::move(arguments));
    return learned_by(run);
  }
  ChildProcess begin(int gpus, std::vector<std::string> arguments) {
    const std::vector<std::string> all = {
        "train",     path("job.toml"), "--device",     gpus > 0 ? "gpu" : "cpu", "--dir",
        path("run"), "--report",       path("report"), "--deterministic"};
    arguments.insert(arguments.begin(), all.begin(), all.end());
    arguments.emplace_back("--overwrite");
    return start(std::move(arguments), "output", {str("CAIRN_FAKE_GPUS=", gpus)});
  }
  Learned learned_by(ChildProcess& run) {
    EXPECT_EQ(end_in_time(run, 120'000, output()).code, 0) << output();
    return {report()["loss"].get<double>(), report()["metrics"]["logloss"].get<double>()};
  }
  void expect_same(const Learned& found, const Learned& wanted) {
    EXPECT_NEAR(found.loss, wanted.loss, 1e-5);
    EXPECT_NEAR(found.logloss, wanted.logloss, 1e-5);
    EXPECT_LT(found.logloss, 0.69);  // it has learned something
  }
};

TEST_F(ReplicasOnGpus, OfOneStrategyLearnOnAGpuEachAndOnOneTogetherWhatTheyLearnOnTheCpu) {
  for (const char* kind : {"mirrored", "central_storage"}) {
    const std::vector<std::string> two = {"--strategy", kind, "--replicas", "2"};
    const Learned wanted = train(0, two);
    expect_same(train(2, two), wanted);
    EXPECT_THAT(output(), HasSubstr("values are summed on their GPUs, by fake drivers\n"));
    EXPECT_THAT(output(), HasSubstr("computes on gpu:0"));
    EXPECT_EQ(report()["gpus"].size(), 2u) << report()["gpus"];
    expect_same(train(1, two), wanted);
    EXPECT_THAT(output(),
                HasSubstr("values are summed in the host's memory: replicas share gpu:0\n"));
    EXPECT_EQ(report()["gpus"].size(), 1u) << report()["gpus"];
  }
}

TEST_F(ReplicasOnGpus, AreToldByTheListOfDevicesHowTheySumValues) {
  for (const char* gpus : {"1", "2"}) {  // a single one may sum with those of other processes
    ASSERT_EQ(cairn({"devices"}, {str("CAIRN_FAKE_GPUS=", gpus)}), 0);
    EXPECT_THAT(output(),
                HasSubstr("\nreplicas that have a GPU each sum values there, by fake drivers\n"));
  }
  EXPECT_THAT(output(), HasSubstr("\ngpu:1  a fake GPU"));
}

TEST_F(ReplicasOnGpus, OfSeveralProcessesSumThereAndLearnWhatTheyLearnOnTheCpu) {
  for (const char* replicas : {"1", "2"}) {
    const std::vector<std::string> processes = {
        "--strategy", "multi_worker_mirrored", "--workers", "2", "--replicas", replicas};
    const Learned wanted = train(0, processes);
    EXPECT_THAT(output(), Not(HasSubstr("values are summed")));
    expect_same(train(2, processes), wanted);
    EXPECT_THAT(output(), HasSubstr("values are summed on their GPUs, by fake drivers\n"));
  }
}

TEST_F(ReplicasOnGpus, OfSeveralProcessesGoOnFromACheckpointWhenOneIsKilled) {
  const std::vector<std::string> processes = {
      "--strategy", "multi_worker_mirrored", "--workers", "2", "--epochs",
      "100",        "--checkpoint-every",    "50"};
  const Learned wanted = train(0, processes);
  folder_.write("output", "");
  std::filesystem::rename(path("run"), path("wanted"));
  ChildProcess run = begin(2, processes);
  pollfd ended{.fd = run.pidfd(), .events = POLLIN};
  while (!std::filesystem::exists(path("run/checkpoints/ckpt-00000001")) &&
         ::poll(&ended, 1, 10) == 0) {
  }
  const Json tasks = parse_json(folder_.read("run/cluster.json"), "cluster.json")["tasks"];
  const int victim = tasks[1]["pid"].get<int>();
  ASSERT_GT(victim, 0) << "the run ended before its first checkpoint: " << output();
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  expect_same(learned_by(run), wanted);
  EXPECT_THAT(output(),
              AllOf(HasSubstr("worker 1 (process "), HasSubstr("all 2 workers are started again"),
                    HasSubstr("resumed from ")));
}

// In rounds, so that a closure's place among the others does not change what it learns.
TEST_F(ReplicasOnGpus, LanesOfAWorkerOnAGpuEachLearnWhatTheyLearnOnTheCpu) {
  const std::vector<std::string> lanes = {"--ps",    "1", "--workers",     "1",
                                          "--lanes", "2", "--consistency", "synchronous"};
  const Learned wanted = train(0, lanes);
  expect_same(train(2, lanes), wanted);
  EXPECT_THAT(folder_.read("run/logs/worker-0.log"),
              AllOf(HasSubstr("computes on gpu:0 (a fake GPU"), HasSubstr(", gpu:1 (a fake GPU")));
}

TEST_F(ReplicasOnGpus, OfAWorkerThatIsKilledLearnEachClosureOnce) {
  std::vector<std::string> cluster = {"--ps",          "1",          "--workers", "1",
                                      "--consistency", "synchronous"};
  const Learned wanted = train(0, cluster);
  cluster.insert(cluster.end(), {"--kill", "worker:0@40%"});
  expect_same(train(1, cluster), wanted);
  EXPECT_EQ(report()["restarts"]["worker"], 1) << output();
}

}  // namespace
}  // namespace cairn::tools
