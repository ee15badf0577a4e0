// A program's own update rule where rows are not in the program's process: on parameter servers,
// and on lanes that mirror variables.
#include "core/graph/custom_rule.h"

#include <gmock/gmock.h>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Adds the gradient to a sum, and has the sum as its value: so the value reveals the slot.
UpdateRule summing(float factor = 1) {
  return custom_rule("summing", {{"sum", 0}}, [factor](const RuleInput& in) {
    const Array sum = in.slots[0] + factor * in.learning_rate * in.gradient;
    return RuleOutput{sum, {sum}};
  });
}

Array third() { return Array(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{3})); }

// A variable and a row of a table, whose gradients are 1 and which are so pushed to.
struct Summed {
  Summed(Strategy& strategy, const UpdateRule& rule) {
    v = strategy.create_variable({.name = "v", .shape = {4}, .initializer = Initializer::zeros()});
    rows = strategy.create_variable(
        {.name = "rows", .shape = {6, 2}, .initializer = Initializer::zeros()});
    for (const Variable& each : {v, rows}) strategy.add_slots(each, rule);
  }
  void step(const UpdateRule& rule, const Array& id) const {
    v.update(rule, ones_like(v.read()), Array(1.0f));
    rows.update(rule, IndexedSlices{id, Array(Tensor::of<float>({1, 2}, std::vector<float>{1, 1}))},
                Array(1.0f));
  }
  std::vector<float> of_v() const { return values(v); }
  std::vector<float> of_rows() const { return values(rows); }

  Variable v, rows;

 private:
  static std::vector<float> values(const Variable& variable) {
    const Tensor all = variable.read().eval();
    return {all.values<float>().begin(), all.values<float>().end()};
  }
};

struct Job {
  explicit Job(SimulatedCluster& cluster, const UpdateRule& by = summing())
      : coordinator(cluster.strategy()), summed(cluster.strategy(), by), rule(by) {
    train = cluster.strategy().function([this] { summed.step(rule, third()); });
  }
  void run(int times) {
    for (int i = 0; i < times; ++i) coordinator.schedule(train);
    coordinator.join(kPatience);
  }

  ClusterCoordinator coordinator;
  Summed summed;
  UpdateRule rule;
  Function train;
};

SimulatedClusterOptions with(Consistency consistency) {
  SimulatedClusterOptions options{.ps = 2, .workers = 2};
  options.strategy.partitioner = FixedShardsPartitioner(2);
  options.strategy.consistency = consistency;
  return options;
}

TEST(CustomRuleOnServers, IsAppliedOncePerClosureOrPerRound) {
  const std::pair<Consistency, float> all[] = {{Consistency::asynchronous(), 40},
                                               {Consistency::bounded(2), 40},
                                               {Consistency::synchronous(), 40},
                                               {HybridConsistency::make(), 40}};
  for (const auto& [consistency, wanted] : all) {
    SCOPED_TRACE(consistency.text());
    SimulatedCluster cluster(with(consistency));
    Job job(cluster);
    job.run(40);
    EXPECT_THAT(job.summed.of_v(), Each(wanted)) << "under rounds, two shares added up in each";
    EXPECT_THAT(job.summed.of_rows(), ElementsAre(0, 0, 0, 0, 0, 0, wanted, wanted, 0, 0, 0, 0));
  }
}

TEST(CustomRuleOnServers, IsExactlyOnceWhateverDies) {
  for (int seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    SimulatedClusterOptions options = with(Consistency::asynchronous());
    options.seed = options.network.seed = static_cast<std::uint64_t>(seed);
    SimulatedCluster cluster(options);
    Job job(cluster);
    job.run(30);
    job.coordinator.save({.folder = "/c"});
    cluster.kill_ps(seed % 2);
    cluster.run_for(std::chrono::milliseconds(30));
    cluster.start_ps(seed % 2);
    for (int i = 0; i < 30; ++i) job.coordinator.schedule(job.train);
    cluster.run_for(std::chrono::milliseconds(2 + seed));
    cluster.kill_worker(seed % 2);
    cluster.run_for(std::chrono::milliseconds(20));
    cluster.start_worker(seed % 2);
    job.coordinator.join(kPatience);
    EXPECT_EQ(job.coordinator.stats().lost_updates, 0u);
    EXPECT_THAT(job.summed.of_v(), Each(60.0f));
    EXPECT_EQ(job.summed.of_rows()[6], 60);
  }
}

// Another process then goes on.
std::string saved_after_25(SimulatedCluster& cluster) {
  std::string checkpoint;
  {
    Job job(cluster);
    job.run(25);
    checkpoint = job.coordinator.save({.folder = "/c"});
  }
  cluster.kill_chief();
  return checkpoint;
}

// The servers have the rows and the slots of the checkpoint before the rule reaches them.
TEST(CustomRuleOnServers, GoesOnFromACheckpointInAnotherProcess) {
  SimulatedCluster cluster(with(Consistency::asynchronous()));
  const std::string checkpoint = saved_after_25(cluster);
  for (int i : {0, 1}) cluster.kill_ps(i), cluster.start_ps(i);
  cluster.start_chief();
  Job job(cluster);
  job.coordinator.restore(checkpoint);
  job.run(10);
  EXPECT_THAT(job.summed.of_v(), Each(35.0f));
  EXPECT_EQ(job.summed.of_rows()[6], 35);
}

TEST(CustomRuleOnServers, TakesNoSlotsOfAnotherRule) {
  SimulatedCluster cluster(with(Consistency::asynchronous()));
  const std::string checkpoint = saved_after_25(cluster);
  cluster.start_chief();
  const auto other = custom_rule("counting", {{"count", 0}}, [](const RuleInput& in) {
    return RuleOutput{in.slots[0] + 1.0f, {in.slots[0] + 1.0f}};
  });
  Job job(cluster, other);
  job.run(1);  // the rule is known
  try {
    job.coordinator.restore(checkpoint).assert_consumed();
    ADD_FAILURE() << "it was taken";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("\"v\" is updated by counting (count), in the checkpoint by "
                                     "custom (sum)"));
  }
  job.coordinator.restore(checkpoint).expect_partial();
  EXPECT_THAT(job.summed.of_v(), Each(25.0f));
  job.run(1);
  EXPECT_THAT(job.summed.of_v(), Each(1.0f)) << "its own slot began anew";
}

TEST(CustomRuleOnServers, OfOtherConstantsIsRefused) {
  SimulatedCluster cluster(with(Consistency::asynchronous()));
  Job job(cluster);
  job.run(1);
  try {
    cluster.strategy().add_slots(job.summed.v, summing(2));
    ADD_FAILURE() << "it was taken";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("\"v\" is updated by summing already"));
  }
}

}  // namespace
}  // namespace cairn
