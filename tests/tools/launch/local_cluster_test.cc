#include "tools/launch/local_cluster.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tests/tools/event_log.h"
#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = RoleEvent::Kind;

class LocalClusterTest : public testing::Test {
 protected:
  LocalClusterTest() {
    folder_.script("cairn-ps", std::string("echo ps $* $TF_CONFIG\n") + kServe);
    folder_.script("cairn-worker", std::string("echo worker $*\n") + kServe);
  }
  LocalClusterOptions options() const {
    return {.ps = 1,
            .workers = 2,
            .shards = 3,
            .lanes = 4,
            .dir = folder_.path() + "/run",
            .programs = folder_.path()};
  }
  Json description() const {
    return parse_json(folder_.read("run/cluster.json"), "run/cluster.json");
  }

  TempFolder folder_;
  EventLog log_;
};

TEST_F(LocalClusterTest, EveryTaskIsToldTheClusterAndItself) {
  LocalCluster cluster(options());

  Json config = parse_json(cluster.tf_config("worker", 1), "TF_CONFIG");

  EXPECT_EQ(config["task"], (Json{{"type", "worker"}, {"index", 1}}));
  EXPECT_EQ(config["cluster"]["chief"].size(), 1u);
  EXPECT_EQ(config["cluster"]["ps"].size(), 1u);
  EXPECT_EQ(config["cluster"]["worker"].size(), 2u);
  EXPECT_NE(config["cluster"]["worker"][0], config["cluster"]["worker"][1]);
}

TEST_F(LocalClusterTest, WithoutDataWorkersThereIsNoDataService) {
  LocalCluster cluster(options());
  EXPECT_THAT(cluster.environment("chief", 0),
              testing::Not(testing::Contains(HasSubstr("CAIRN_DATA_SERVICE"))));
}

// As on a full disk: the description cannot be written, neither at the start nor when all ends.
TEST_F(LocalClusterTest, AFolderThatTakesNoDescriptionIsAnErrorAndNotTheEndOfTheProcess) {
  std::filesystem::create_directories(folder_.path() + "/run/cluster.json/taken");
  LocalCluster cluster(options());
  EXPECT_THROW(cluster.start(), Error);
}

TEST_F(LocalClusterTest, ServersGetTheirFlagsAndLogToTheirFiles) {
  std::string fifo = folder_.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  folder_.script("cairn-ps", "echo ps $* $TF_CONFIG\necho said > " + fifo + "\n" + kServe);
  LocalCluster cluster(options(), log_.sink());
  cluster.start();
  std::string word;
  std::ifstream(fifo) >> word;

  std::string said = folder_.read("run/logs/ps-0.log");
  std::string address = parse_json(cluster.tf_config("ps", 0), "TF_CONFIG")["cluster"]["ps"][0];
  EXPECT_THAT(said,
              HasSubstr("--listen " + address + " --index 0 --cluster-id " + cluster.cluster_id()));
  EXPECT_THAT(said, HasSubstr("--token-file " + cluster.token_file()));
  EXPECT_THAT(said, HasSubstr("--shards 3"));
  EXPECT_THAT(said, HasSubstr(R"("task":{"type":"ps","index":0})"));
}

TEST_F(LocalClusterTest, WorkersAreToldOnWhatToCompute) {
  std::string fifo = folder_.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  folder_.script("cairn-worker", "echo worker $*\necho said > " + fifo + "\n" + kServe);
  LocalClusterOptions wanted = options();
  wanted.workers = 1;
  wanted.device = "gpu:1";
  wanted.deterministic = true;
  LocalCluster cluster(wanted, log_.sink());
  cluster.start();
  std::string word;
  std::ifstream(fifo) >> word;
  EXPECT_THAT(folder_.read("run/logs/worker-0.log"), HasSubstr("--device gpu:1 --deterministic"));

  wanted.device = "tpu";
  try {
    LocalCluster refused(wanted);
    ADD_FAILURE() << "it was not refused";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--device: there is no device \"tpu\""));
  }
}

TEST_F(LocalClusterTest, ADataServiceIsADispatcherAndDataWorkersThatComeBack) {
  folder_.script("cairn-data", std::string("echo data $* [$TF_CONFIG]\n") + kServe);
  LocalClusterOptions wanted = options();
  wanted.data_workers = 2;
  LocalCluster cluster(wanted, log_.sink());
  cluster.start();
  cluster.supervisor().kill("data_worker", 1);
  RoleEvent back = log_.wait(Kind::kStarted, "data_worker", 1, 2);

  Json tasks = description()["tasks"];
  ASSERT_EQ(tasks.size(), 7u);
  EXPECT_EQ(tasks[1]["role"], "dispatcher");
  EXPECT_EQ(tasks[3]["role"], "data_worker");
  EXPECT_EQ(tasks[3]["pid"], back.pid);
  const std::string dispatcher = tasks[1]["address"];
  EXPECT_THAT(cluster.environment("chief", 0),
              testing::Contains("CAIRN_DATA_SERVICE=" + dispatcher));
}

TEST_F(LocalClusterTest, TheDescriptionFollowsRestartsAndTheEnd) {
  LocalCluster cluster(options(), log_.sink());
  cluster.start();
  cluster.supervisor().kill("worker", 1);
  RoleEvent back = log_.wait(Kind::kStarted, "worker", 1, 2);

  Json tasks = description()["tasks"];
  ASSERT_EQ(tasks.size(), 4u);
  EXPECT_EQ(tasks[0]["role"], "chief");
  EXPECT_EQ(tasks[3]["pid"], back.pid);
  EXPECT_EQ(tasks[3]["restarts"], 1);
  EXPECT_EQ(tasks[3]["state"], "running");
  EXPECT_EQ(description()["running"], true);

  cluster.stop();
  EXPECT_EQ(description()["running"], false);
  EXPECT_EQ(description()["tasks"][3]["pid"], -1);
}

TEST_F(LocalClusterTest, ARunThatBeginsIsNotSaidToHaveEnded) {
  std::vector<bool> running;
  LocalCluster cluster(options(), [&](const RoleEvent& event) {
    if (event.kind == Kind::kStarted) running.push_back(description()["running"]);
  });
  cluster.start();
  cluster.stop();

  EXPECT_THAT(running, ElementsAre(true, true, true));
  EXPECT_EQ(description()["running"], false);
}

TEST_F(LocalClusterTest, ADescriptionThatCannotBeReplacedIsAWarningAndEndsNothing) {
  std::vector<std::string> warnings;
  LocalClusterOptions with = options();
  with.warn = [&](const std::string& text) { warnings.push_back(text); };
  {
    LocalCluster cluster(with);
    cluster.start();
    std::filesystem::rename(with.dir, folder_.path() + "/away");

    cluster.stop();
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("cluster.json is out of date"));
}

TEST_F(LocalClusterTest, TheTokenIsRandomAndForItsOwnerOnly) {
  LocalCluster cluster(options());
  LocalClusterOptions elsewhere = options();
  elsewhere.dir = folder_.path() + "/other";
  LocalCluster other(elsewhere);

  struct stat file {};
  ASSERT_EQ(::stat(cluster.token_file().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  EXPECT_EQ(folder_.read("run/token"), cluster.token());
  EXPECT_EQ(cluster.token().size(), 32u);
  EXPECT_NE(cluster.token(), other.token());
  EXPECT_NE(cluster.cluster_id(), other.cluster_id());
}

TEST_F(LocalClusterTest, AFolderServesOneRunAtATime) {
  LocalCluster cluster(options());
  EXPECT_THROW(LocalCluster second(options()), FailedPreconditionError);
}

TEST_F(LocalClusterTest, WhatCannotBeBuiltIsRefusedBeforeAnythingStarts) {
  auto with = [&](auto change) {
    LocalClusterOptions changed = options();
    change(changed);
    return changed;
  };
  EXPECT_THROW(LocalCluster(with([](auto& o) { o.ps = 0; })), InvalidArgumentError);
  EXPECT_THROW(LocalCluster(with([](auto& o) { o.workers = -1; })), InvalidArgumentError);
  EXPECT_THROW(LocalCluster(with([](auto& o) { o.transport = "pigeon"; })), InvalidArgumentError);
  EXPECT_THROW(LocalCluster(with([](auto& o) { o.supervisor.kills = {parse_kill("ps:1@1s")}; })),
               InvalidArgumentError);
  EXPECT_THROW(LocalCluster(with([](auto& o) { o.programs = "/"; })), NotFoundError);
}

}  // namespace
}  // namespace cairn::tools
