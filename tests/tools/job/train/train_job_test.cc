// A program trains a job itself, in its own process (train_job.h).
#include "tools/job/train/train_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/look_up.h"
#include "model/saved/loaded_model.h"
#include "tests/tools/temp_folder.h"
#include "tools/job/train/checkpoint_path.h"
#include "tools/job/train/train_flags.h"

namespace cairn::tools {
namespace {
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPrograms =
    std::string(CAIRN_PROGRAM).substr(0, std::string(CAIRN_PROGRAM).rfind('/'));

class TrainJob : public ::testing::Test {
 protected:
  TrainJob() {
    std::string rows;
    for (int i = 0; i < 64; ++i) rows += str(i % 2, ",", i % 2 == 0 ? -1 : 1, "\n");
    folder_.write("a.csv", rows);
  }
  // A job as a program states it, with `more` put into its sections.
  TrainRequest request(const std::string& kind, const Json& more = Json::object()) {
    Json job{{"data",
              {{"train", "a.csv"},
               {"test", "a.csv"},
               {"batch", 8},
               {"epochs", 4},
               {"csv",
                {{"columns", {"label:float32", "x:float32"}}, {"label", {{"column", "label"}}}}}}},
             {"features", {{"numeric", {"x"}}}},
             {"model", {{"kind", "deep"}, {"hidden", {4}}}},
             {"strategy", {{"kind", kind}}}};
    job.merge_patch(more);
    TrainRequest made;
    made.job_values = json_text(job);
    made.beside = folder_.path();
    made.dir = folder_.path() + "/run";
    return made;
  }
  JobEvents events() {
    return {.say = [this](const std::string& line) { said_.push_back(line); },
            .warn = [this](const std::string& line) { warned_.push_back(line); },
            .began = [this] { ++began_; },
            .interrupted = &interrupted_,
            .programs = kPrograms};
  }

  TempFolder folder_;
  std::vector<std::string> said_, warned_;
  int began_ = 0;
  std::atomic<int> interrupted_ = 0;
};

TEST_F(TrainJob, LeavesAModelThatPredicts) {
  const TrainedJob trained = train_job(request("one_device"), events());
  EXPECT_EQ(trained.folder, folder_.path() + "/run");
  EXPECT_EQ(trained.checkpoints, trained.folder + "/checkpoints");
  EXPECT_EQ(trained.failure, "");
  EXPECT_EQ(began_, 1);
  const Json report = parse_json(trained.report, "the report");
  EXPECT_EQ(report["steps"], 32);
  EXPECT_GT(report["metrics"]["auc"].get<double>(), 0.99);
  EXPECT_EQ(LoadedModel::load(trained.model).about().global_step, 32);
  EXPECT_THAT(said_, Contains(HasSubstr("64 training examples")));
  EXPECT_THAT(said_, Contains(HasSubstr("done after 32 steps")));
}

TEST_F(TrainJob, OnServersIsTheirCoordinator) {
  const TrainedJob trained =
      train_job(request("parameter_server", {{"cluster", {{"ps", 1}, {"workers", 1}}}}), events());
  const Json report = parse_json(trained.report, "the report");
  EXPECT_EQ(report["cluster"]["ps"], 1);
  EXPECT_EQ(report["steps"], 32);
  EXPECT_THAT(said_, Contains(HasSubstr("cluster: 1 ps and 1 workers")));
  EXPECT_THAT(folder_.read("run/logs/chief-0.log"), HasSubstr("checkpoint"));
}

TEST_F(TrainJob, SaysOnHowManyPsEachRowLies) {
  TrainRequest wanted =
      request("parameter_server", {{"cluster", {{"ps", 2}, {"workers", 1}, {"replicas", 2}}}});
  const Json report = parse_json(train_job(wanted, events()).report, "the report");
  EXPECT_EQ(report["cluster"]["replicas"], 2);
  EXPECT_EQ(report["steps"], 32);
  EXPECT_THAT(said_, Contains(HasSubstr("2 ps and 1 workers, each row on 2 ps")));
}

TEST_F(TrainJob, MoreReplicasThanPsAreRefusedBeforeAnythingStarts) {
  TrainRequest wanted = request("hybrid", {{"cluster", {{"ps", 2}, {"replicas", 3}}}});
  EXPECT_THAT([&] { train_job(wanted, events()); },
              ::testing::ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("cluster.replicas is 3"), HasSubstr("2 ps"))));
  wanted.overrides.strategy.replicas = 4;
  EXPECT_THAT([&] { train_job(wanted, events()); },
              ::testing::ThrowsMessage<InvalidArgumentError>(HasSubstr("--replicas is 4")));
  EXPECT_THAT(said_, ::testing::IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/run"));
}

TEST_F(TrainJob, OnAGroupOfWorkersSupervisesThem) {
  const TrainedJob trained =
      train_job(request("multi_worker_mirrored", {{"cluster", {{"workers", 2}}}}), events());
  const Json report = parse_json(trained.report, "the report");
  EXPECT_EQ(report["strategy"]["replicas"], 2);
  EXPECT_EQ(report["steps"], 32);
  EXPECT_EQ(LoadedModel::load(trained.model).about().global_step, 32);
}

TEST_F(TrainJob, AnErrorOfAGroupHasTheChiefsWords) {
  TrainRequest bad = request("multi_worker_mirrored", {{"data", {{"train", "none.csv"}}}});
  EXPECT_THAT(
      [&] { train_job(bad, events()); },
      ::testing::ThrowsMessage<Error>(AllOf(HasSubstr("none.csv"), Not(HasSubstr("job.toml:")))));
}

TEST_F(TrainJob, RequestsOverrideTheJob) {
  TrainRequest wanted = request("parameter_server");
  wanted.overrides.strategy.kind = "mirrored";
  wanted.overrides.steps = 3;
  const Json report = parse_json(train_job(wanted, events()).report, "the report");
  EXPECT_EQ(report["strategy"]["kind"], "mirrored");
  EXPECT_EQ(report["steps"], 3);
}

TEST_F(TrainJob, AnErrorNamesTheKeyAndNoLine) {
  EXPECT_THAT(
      [&] {
        train_job(request("one_device", {{"data", {{"bath", 3}}}}));
      },
      ::testing::ThrowsMessage<InvalidArgumentError>(
          AllOf(HasSubstr("job: unknown key \"data.bath\"; did you mean \"batch\"?"),
                Not(HasSubstr(":0")))));
  EXPECT_THAT(
      [&] {
        train_job(request("one_device", {{"data", {{"batch", "8"}}}}));
      },
      ::testing::ThrowsMessage<InvalidArgumentError>(
          HasSubstr("job: data.batch must be a whole number")));
  TrainRequest list;
  list.job_values = "[]";
  EXPECT_THAT([&] { train_job(list); },
              ::testing::ThrowsMessage<InvalidArgumentError>(HasSubstr("must be a table")));
}

TEST_F(TrainJob, AnInterruptOnTheWaySavesAndEnds) {
  TrainRequest wanted = request("one_device");
  wanted.overrides.steps = 100'000'000;
  JobEvents told = events();
  told.progress = [this](const std::string& line) {
    if (!line.starts_with("step 0/")) interrupted_ = SIGINT;
  };
  const TrainedJob trained = train_job(wanted, told);
  EXPECT_EQ(trained.interrupted, SIGINT);
  EXPECT_THAT(checkpoints_at(trained.checkpoints), ::testing::Not(::testing::IsEmpty()));
  EXPECT_THAT(said_, Contains(HasSubstr("interrupted by SIGINT")));
}

TEST_F(TrainJob, WhatALookUpThrowsGivesTheRunUpAndLeavesTheFolderFree) {
  struct GivenUp {};
  TrainRequest wanted = request("one_device");
  wanted.overrides.steps = 100'000'000;
  {
    const LookUp look_up([&] {
      if (began_ > 0) throw GivenUp{};
    });
    EXPECT_THROW(train_job(wanted, events()), GivenUp);
  }
  wanted.overrides.steps = 3;
  wanted.overwrite = true;
  EXPECT_EQ(parse_json(train_job(wanted, events()).report, "the report")["steps"], 3);
}

TEST(TrainFlags, APassedOnRequestIsTheSame) {
  TrainRequest request;
  request.report = "r.json";
  request.dir = "elsewhere";
  request.partial = true;
  request.overrides.epochs = 0.1;
  request.overrides.seed = 7;
  request.overrides.strategy.kind = "multi_worker_mirrored";
  request.overrides.workers = 3;
  EXPECT_THAT(coordinator_arguments(request, "job.toml"),
              ElementsAre("job.toml", "--report=r.json", "--partial", "--epochs=0.1", "--seed=7",
                          "--strategy=multi_worker_mirrored"));
}

}  // namespace
}  // namespace cairn::tools
