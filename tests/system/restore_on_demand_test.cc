// Real processes that go on from a checkpoint while their rows are still read from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/graph/ops.h"
#include "strategy/servers/cluster_coordinator.h"
#include "tests/storage/damage.h"
#include "tests/system/running_cluster.h"
#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kComingRows = 200'000, kComingDim = 16, kIdsAStep = 2'000;
const UpdateRule kAdagradOfRows{RuleKind::kAdagrad, {0.1f, 1e-7f}};
constexpr std::int64_t kManyRows = std::int64_t{1} << 40;

// A program of one worker, whose steps therefore come one after another, and the servers that it
// starts: two tables under Adagrad.
class Trained {
 public:
  explicit Trained(const std::string& dir)
      : cluster_({.ps = 2, .workers = 1, .shards = 1, .lanes = 1, .dir = dir}, options()) {
    dense_ = table("dense", kComingRows, false);
    hashed_ = table("hashed", kManyRows, true);
    step_ = cluster_.strategy().function(
        [this](const Array& ids) {
          for (const Variable& table : {dense_, hashed_}) {
            const Array rows = table.gather(ids);
            table.update(kAdagradOfRows, IndexedSlices{ids, rows * 0.5f + 0.25f, table.shape()},
                         Array(0.1f));
          }
        },
        "step");
  }

  // Steps of random rows, the same for the same numbers.
  void train(std::int64_t begin, std::int64_t end) {
    for (std::int64_t step = begin; step < end; ++step)
      cluster_.coordinator().schedule(step_, {ids(step)});
    cluster_.coordinator().join();
  }
  std::string save(const std::string& folder) {
    return cluster_.coordinator().save({.folder = folder});
  }
  void restore(const std::string& checkpoint, bool on_demand) {
    cluster_.coordinator().restore(checkpoint, {.on_demand = on_demand});
  }
  // All rows that the steps have to do with.
  std::vector<float> rows(std::int64_t steps) {
    std::vector<float> all;
    for (std::int64_t step = 0; step < steps; ++step)
      for (const Variable& table : {dense_, hashed_}) {
        const Tensor rows = table.gather(Array(ids(step))).eval();
        const auto values = rows.values<float>();
        all.insert(all.end(), values.begin(), values.end());
      }
    return all;
  }
  void kill_all_ps() { cluster_.kill_all_ps(); }

 private:
  static ParameterServerOptions options() {
    ParameterServerOptions options;
    options.engine.pipeline_depth = 1;
    options.partitioner = FixedShardsPartitioner(2);
    return options;
  }
  Variable table(const std::string& name, std::int64_t rows, bool hashed) {
    Variable made = cluster_.strategy().create_variable({.name = name,
                                                         .shape = {rows, kComingDim},
                                                         .initializer = Initializer::uniform(-1, 1),
                                                         .hashed = hashed});
    const Scope scope = cluster_.strategy().scope();
    current_variable_creator().add_slots(made, kAdagradOfRows);
    return made;
  }
  static Tensor ids(std::int64_t step) {
    Random random(static_cast<std::uint64_t>(step));
    std::vector<std::int64_t> ids(kIdsAStep);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random.below(kComingRows));
    return Tensor::of<std::int64_t>({kIdsAStep}, ids);
  }

  RunningCluster cluster_;
  Variable dense_, hashed_;
  Function step_;
};

constexpr std::int64_t kStepsSaved = 120, kStepsInAll = 130;

TEST(RestoreOnDemand, TenStepsAfterItEndInTheSameBitsAsAfterAWholeRestore) {
  const TempFolder folder;
  std::string checkpoint;
  std::vector<float> expected;
  {
    Trained first(folder.path() + "/first");
    first.train(0, kStepsSaved);
    checkpoint = first.save(folder.path() + "/checkpoints");
    first.restore(checkpoint, false);
    first.train(kStepsSaved, kStepsInAll);
    expected = first.rows(kStepsInAll);
  }
  Trained second(folder.path() + "/second");
  second.restore(checkpoint, true);
  second.train(kStepsSaved, kStepsInAll);
  EXPECT_TRUE(second.rows(kStepsInAll) == expected);
  // A ps that dies while its rows are still to come begins anew, in the same way. The next
  // checkpoint waits for all rows, and holds them.
  second.restore(checkpoint, true);
  second.kill_all_ps();
  second.train(kStepsSaved, kStepsInAll);
  EXPECT_TRUE(second.rows(kStepsInAll) == expected);
  const std::string later = second.save(folder.path() + "/checkpoints");
  second.restore(later, false);
  EXPECT_TRUE(second.rows(kStepsInAll) == expected);
}

TEST(RestoreOnDemand, ADamagedBlockEndsTheRunAndIsNamedWithTheNewestSoundCheckpoint) {
  const TempFolder folder;
  Trained run(folder.path() + "/run");
  run.train(0, kStepsSaved / 2);
  const std::string sound = run.save(folder.path() + "/checkpoints");
  run.train(kStepsSaved / 2, kStepsSaved);
  const std::string checkpoint = run.save(folder.path() + "/checkpoints");
  const std::string rotten = storage::damage_in_the_middle(checkpoint + "/ps-1-shard-0");
  const auto names_both = ThrowsMessage<DataLossError>(AllOf(HasSubstr(rotten), HasSubstr(sound)));
  EXPECT_NO_THROW(run.restore(checkpoint, true));
  EXPECT_THAT([&] { run.train(0, kStepsSaved); }, names_both);
  EXPECT_THAT([&] { run.save(folder.path() + "/checkpoints"); }, names_both);
}

}  // namespace
}  // namespace cairn::tools
