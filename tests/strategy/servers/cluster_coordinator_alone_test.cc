// One coordinator has a cluster, and one run a folder of checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/journal/cluster_config.h"
#include "coordinator/journal/config_store.h"
#include "storage/checkpoint_folder.h"
#include "storage/folder_lock.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint64_t> epochs_of(const ClusterConfig& config) {
  std::vector<std::uint64_t> epochs;
  for (const ShardLayout& shard : config.shards) epochs.push_back(shard.epoch.number);
  return epochs;
}

class OneCoordinator : public ::testing::Test {
 protected:
  SimulatedCluster cluster_{{.ps = 2, .workers = 2}};
  std::unique_ptr<rpc::SimOffload> offload_ =
      std::make_unique<rpc::SimOffload>(cluster_.reactor(), 99, Duration(0));

  // A second start of the same program, on another host.
  std::unique_ptr<ParameterServerStrategy> second(bool take_over = false) {
    EngineOptions options;
    options.session = 77;
    options.take_over = take_over;
    options.session.config_store = config_;
    for (int i = 0; i < 2; ++i) {
      options.cluster.add_task("ps", "sim://ps" + std::to_string(i));
      options.cluster.add_task("worker", "sim://worker" + std::to_string(i));
    }
    return std::make_unique<ParameterServerStrategy>(start_simulated_engine(
        options,
        {cluster_.reactor(), cluster_.network().host("chief2"), *offload_, cluster_.disk()}));
  }
  static Json status_of(ParameterServerStrategy& strategy) {
    return Json::parse(strategy.host().engine().status_json());
  }
  std::shared_ptr<ConfigStore> config_;
  std::vector<std::uint64_t> ids(const std::string& folder) {
    std::vector<std::uint64_t> ids;
    for (const auto& entry : storage::CheckpointFolder(cluster_.disk(), folder).list())
      ids.push_back(entry.id);
    return ids;
  }
};

TEST_F(OneCoordinator, ASecondOneIsRefusedAndToldWhomItWouldEnd) {
  Counters counters(cluster_.strategy());
  ClusterCoordinator first(cluster_.strategy());
  Function add = cluster_.strategy().function([&] {
    counters.add_one(Array(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{0})));
  });
  for (int i = 0; i < 10; ++i) first.schedule(add);
  first.join(kPatience);
  try {
    second();
    ADD_FAILURE() << "it took the cluster";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("/job:ps/task:0"), HasSubstr("session "), HasSubstr("pid "),
                      HasSubstr(" on host "), HasSubstr("chief"), HasSubstr("since 20"),
                      HasSubstr("last heard"), HasSubstr("--take-over")));
  }
  for (int i = 0; i < 10; ++i) first.schedule(add);
  first.join(kPatience);
  EXPECT_EQ(counters.value_of_v(), 20.0f);  // the first has lost nothing
  EXPECT_TRUE(first.stats().losses.empty());
}

TEST_F(OneCoordinator, OneThatTakesOverEndsTheFirstWhichIsTold) {
  Counters counters(cluster_.strategy());
  ClusterCoordinator first(cluster_.strategy());
  auto other = second(true);
  const Counters fresh(*other);
  EXPECT_EQ(fresh.value_of_v(), 0.0f);
  cluster_.run_for(seconds(3));
  Function add = cluster_.strategy().function([&] {
    counters.add_one(Array(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{0})));
  });
  try {
    first.schedule(add);
    first.join(kPatience);
    ADD_FAILURE() << "it trains on";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("taken over"), HasSubstr("session 77")));
  }
  EXPECT_EQ(fresh.value_of_v(), 0.0f);
}

TEST_F(OneCoordinator, OneThatWasKilledGivesWayAtOnce) {
  const Duration before = cluster_.reactor().now();
  cluster_.kill_chief();
  cluster_.start_chief();
  EXPECT_LT(cluster_.reactor().now() - before, milliseconds(500));
}

TEST_F(OneCoordinator, OneWhoseHostHasGoneGivesWayWhenItsHeartbeatsAreMissed) {
  for (const char* task : {"ps0", "ps1", "worker0", "worker1"})
    cluster_.network().partition_both("chief", task);
  const Duration before = cluster_.reactor().now();
  const auto other = second();
  EXPECT_LT(cluster_.reactor().now() - before, seconds(2));
  const Counters fresh(*other);
  EXPECT_EQ(fresh.value_of_v(), 0.0f);
}

TEST_F(OneCoordinator, OneThatStartsLaterWithItsConfigurationHasTheNextTermAndTheFirstIsTold) {
  config_ = make_file_config_store(cluster_.disk(), "/config");
  cluster_.kill_chief();
  auto first = second();
  auto next = second();
  EXPECT_EQ(status_of(*first)["term"], 1);
  EXPECT_EQ(status_of(*next)["term"], 2);
  const ClusterConfig kept = parse_cluster_config(config_->read().text, "the store");
  EXPECT_EQ(kept.term, 2u);
  EXPECT_THAT(epochs_of(kept), ElementsAre(1u, 1u));
  cluster_.run_for(seconds(3));
  const Counters counters(*next);
  EXPECT_EQ(counters.value_of_v(), 0.0f);
  ClusterCoordinator told(*first);
  Function one = first->function([] { return Array(1.0f); });
  try {
    told.schedule(one);
    told.join(kPatience);
    ADD_FAILURE() << "it works on";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("goes on with the session"), HasSubstr("term 2")));
  }
}

// A store that keeps its third version but reports a failure, as a file system does whose answer
// comes too late.
class ForgetfulStore final : public ConfigStore {
 public:
  explicit ForgetfulStore(std::unique_ptr<ConfigStore> store) : store_(std::move(store)) {}
  Version read() override { return store_->read(); }
  bool replace(std::uint64_t after, const std::string& text) override {
    const bool kept = store_->replace(after, text);
    if (kept && after == 2) throw UnavailableError("the store did not answer");
    return kept;
  }
  std::string where() const override { return store_->where(); }

 private:
  std::unique_ptr<ConfigStore> store_;
};

TEST_F(OneCoordinator, AVersionOfItsOwnThatItDidNotHearOfIsNoSuccessor) {
  config_ = std::make_shared<ForgetfulStore>(make_file_config_store(cluster_.disk(), "/config"));
  cluster_.kill_chief();
  auto only = second();
  const Counters counters(*only);
  cluster_.kill_ps(1);
  cluster_.start_ps(1);
  cluster_.run_for(seconds(3));
  EXPECT_EQ(counters.value_of_v(), 0.0f);
  const ClusterConfig kept = parse_cluster_config(config_->read().text, "the store");
  EXPECT_EQ(kept.term, 1u);
  EXPECT_THAT(epochs_of(kept), ElementsAre(1u, 2u));
}

TEST_F(OneCoordinator, TheConfigurationOfAnotherClusterIsRefused) {
  config_ = make_file_config_store(cluster_.disk(), "/config");
  config_->replace(0, to_text({"other", 5, 9, "pid 1 on host eve", {}}));
  try {
    second();
    ADD_FAILURE() << "it was taken";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/config"), HasSubstr("\"other\"")));
  }
  EXPECT_EQ(config_->read().number, 1u);
}

TEST_F(OneCoordinator, ANewProcessOfAPsAnswersInAnEpochThatIsKeptFirst) {
  config_ = make_file_config_store(cluster_.disk(), "/config");
  cluster_.kill_chief();
  auto only = second();
  const Counters counters(*only);
  EXPECT_EQ(counters.value_of_v(), 0.0f);
  cluster_.kill_ps(1);
  cluster_.start_ps(1);
  cluster_.run_for(seconds(3));
  EXPECT_EQ(counters.value_of_v(), 0.0f);
  EXPECT_THAT(epochs_of(parse_cluster_config(config_->read().text, "the store")),
              ElementsAre(1u, 2u));
}

TEST_F(OneCoordinator, ARunKeepsTheCheckpointsOfOthersInItsFolder) {
  {
    const Counters counters(cluster_.strategy());
    ClusterCoordinator first(cluster_.strategy());
    for (int i = 0; i < 3; ++i) first.save({.folder = "/c", .keep_last = 1});
  }
  EXPECT_THAT(ids("/c"), ElementsAre(3));
  cluster_.kill_chief();
  cluster_.start_chief();  // without a restore
  {
    const Counters counters(cluster_.strategy());
    ClusterCoordinator another(cluster_.strategy());
    for (int i = 0; i < 3; ++i) another.save({.folder = "/c", .keep_last = 1});
  }
  EXPECT_THAT(ids("/c"), ElementsAre(3, 6));
  cluster_.kill_chief();
  cluster_.start_chief();
  const Counters counters(cluster_.strategy());
  ClusterCoordinator resumed(cluster_.strategy());
  resumed.restore("/c/ckpt-00000006");
  for (int i = 0; i < 2; ++i) resumed.save({.folder = "/c", .keep_last = 1});
  EXPECT_THAT(ids("/c"), ElementsAre(3, 8));
}

TEST_F(OneCoordinator, TwoRunsDoNotSaveIntoOneFolder) {
  const Counters counters(cluster_.strategy());
  ClusterCoordinator first(cluster_.strategy());
  first.save({.folder = "/c"});
  auto held = storage::lock_folder(cluster_.disk(), "/d", cluster_.reactor().clock(), Duration(0));
  try {
    first.save({.folder = "/d"});
    ADD_FAILURE() << "two save into one folder";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/d"), HasSubstr("pid "), HasSubstr("since ")));
  }
  EXPECT_THROW(storage::lock_folder(cluster_.disk(), "/c", cluster_.reactor().clock(), Duration(0)),
               FailedPreconditionError);
  held.reset();
  EXPECT_NO_THROW(first.save({.folder = "/d"}));
}

}  // namespace
}  // namespace cairn
