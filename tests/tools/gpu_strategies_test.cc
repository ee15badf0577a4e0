// Strategies whose replicas compute on GPUs, fake ones: the values that they come to on the CPU.
#include <gmock/gmock.h>

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
    const std::vector<std::string> all = {"train",          path("job.toml"),
                                          "--device",       gpus > 0 ? "gpu" : "cpu",
                                          "--dir",          path("run"),
                                          "--report",       path("report"),
                                          "--epochs",       "3",
                                          "--deterministic"};
    arguments.insert(arguments.begin(), all.begin(), all.end());
    arguments.emplace_back("--overwrite");
    EXPECT_EQ(cairn(std::move(arguments), {str("CAIRN_FAKE_GPUS=", gpus)}), 0) << output();
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
  ASSERT_EQ(cairn({"devices"}, {"CAIRN_FAKE_GPUS=2"}), 0);
  EXPECT_THAT(output(), HasSubstr("\ngpu:1  a fake GPU"));
  EXPECT_THAT(output(),
              HasSubstr("\nreplicas on several GPUs sum values there, by fake drivers\n"));
  ASSERT_EQ(cairn({"devices"}, {"CAIRN_FAKE_GPUS=1"}), 0);
  EXPECT_THAT(output(), Not(HasSubstr("replicas")));
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

// In rounds, so that a closure's place among the others does not change what it learns.
TEST_F(ReplicasOnGpus, LanesOfAWorkerOnAGpuEachLearnWhatTheyLearnOnTheCpu) {
  const std::vector<std::string> lanes = {"--ps",    "1", "--workers",     "1",
                                          "--lanes", "2", "--consistency", "synchronous"};
  const Learned wanted = train(0, lanes);
  expect_same(train(2, lanes), wanted);
  EXPECT_THAT(folder_.read("run/logs/worker-0.log"),
              AllOf(HasSubstr("computes on gpu:0 (a fake GPU"), HasSubstr(", gpu:1 (a fake GPU")));
}

}  // namespace
}  // namespace cairn::tools
