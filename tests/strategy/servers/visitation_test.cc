// The visits of a per-worker dataset whose pipelines end, at different times, while workers die.
#include <gmock/gmock.h>

#include <fstream>

#include "core/base/random.h"
#include "core/graph/ops.h"
#include "data/dataset/auto_shard.h"
#include "testing/simulated_cluster.h"
#include "tests/storage/fixture.h"

namespace cairn {
namespace {

using ::testing::Each;

constexpr std::int64_t kExamples = 90;

// Counts in a table how often each example was seen.
class Visits {
 public:
  explicit Visits(const SimulatedClusterOptions& options)
      : cluster(options), coordinator(cluster.strategy()) {
    seen_ = cluster.strategy().create_variable(
        {.name = "seen", .shape = {kExamples, 1}, .initializer = Initializer::zeros()});
    step_ = cluster.strategy().function([this](Iterator input) {
      const Array ids = input.get_next().features["value"];
      seen_.scatter_add(ids, expand_dims(cast(ones_like(ids), DType::kFloat32), 1));
    });
  }
  void schedule(const PerWorkerDatasetHandle& data, int closures) {
    for (int i = 0; i < closures; ++i) coordinator.schedule(step_, {data});
  }
  std::vector<float> counts() const {
    const Tensor rows = seen_.read().eval();
    return {rows.values<float>().begin(), rows.values<float>().end()};
  }
  SimulatedCluster cluster;
  ClusterCoordinator coordinator;

 private:
  Variable seen_;
  Function step_;
};

TEST(Visitation, APipelineThatEndsEndsNothing) {
  Visits visits({.ps = 1, .workers = 3});
  const Dataset all = Dataset::range(kExamples);
  const auto data = visits.coordinator.create_per_worker_dataset([&](const InputContext& context) {
    if (context.input_pipeline_id == 0) return all.take(2).batch(1);
    if (context.input_pipeline_id == 1) return all.skip(2).take(0).batch(1);
    return all.skip(2).batch(1);
  });
  visits.schedule(data, kExamples);
  visits.coordinator.join(kPatience);
  EXPECT_THAT(visits.counts(), Each(1.0f));
  visits.schedule(data, 1);
  EXPECT_THROW(visits.coordinator.join(kPatience), OutOfRangeError);
}

TEST(Visitation, ExamplesThatMakeNoWholeStepEndItToo) {
  Visits visits({.ps = 1, .workers = 2});
  const auto data = visits.coordinator.create_per_worker_dataset(Dataset::range(3).batch(1));
  Function pairs = visits.cluster.strategy().function([](Iterator input) {
    const Array first = input.get_next().features["value"];
    return concat({first, input.get_next().features["value"]}, 0);
  });
  for (int i = 0; i < 5; ++i) visits.coordinator.schedule(pairs, {data});
  EXPECT_THROW(visits.coordinator.join(kPatience), OutOfRangeError);
}

TEST(Visitation, ExactlyOnceIsRefusedWhereEveryWorkerReadsEverything) {
  SimulatedCluster cluster({.ps = 1, .workers = 2});
  EXPECT_THROW(cluster.strategy().experimental_distribute_dataset(
                   Dataset::range(4).batch(2), {.auto_shard_policy = AutoShardPolicy::kOff,
                                                .visitation = Visitation::kExactlyOnce}),
               InvalidArgumentError);
}

// Files of different lengths, so that workers come to the end of theirs at different times.
class Numbered {
 public:
  Numbered() {
    std::int64_t next = 0;
    for (const std::int64_t end :
         {std::int64_t{50}, std::int64_t{60}, std::int64_t{65}, kExamples}) {
      paths_.push_back(folder_.path() + "/" + std::to_string(end));
      std::ofstream file(paths_.back());
      while (next < end) file << next++ << "\n";
    }
  }
  Dataset dataset() const {
    return Dataset::csv(paths_, {.columns = {{.name = "value", .dtype = DType::kInt64}}});
  }

 private:
  storage::TempFolder folder_;
  std::vector<std::string> paths_;
};

// More closures than there are elements, and workers that die at any moment, at the end too.
void expect_each_once(const Dataset& batches, std::uint64_t seed) {
  SCOPED_TRACE(str("seed ", seed));
  Visits visits(
      {.ps = 2, .workers = 3, .seed = seed, .strategy = {.engine = {.pipeline_depth = 2}}});
  const auto data = visits.coordinator.create_per_worker_dataset(
      visits.cluster.strategy().experimental_distribute_dataset(
          batches, {.visitation = Visitation::kExactlyOnce}));
  visits.schedule(data, 100);
  Random random(seed);
  for (int kill = 0; kill < 4; ++kill) {
    const int worker = static_cast<int>(random.below(3));
    visits.cluster.run_for(Duration(random.below(3'000'000)));
    visits.cluster.kill_worker(worker);
    visits.cluster.run_for(Duration(random.below(1'000'000)));
    visits.cluster.start_worker(worker);
  }
  EXPECT_THROW(visits.coordinator.join(kPatience), OutOfRangeError);
  EXPECT_THAT(visits.counts(), Each(1.0f));
}

TEST(Visitation, OfOneStreamIsExactlyOnceWhoeverDies) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    expect_each_once(Dataset::range(kExamples).shuffle(16).batch(2), seed);
}

TEST(Visitation, OfOwnFilesIsExactlyOnceWhoeverDies) {
  const Numbered files;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    expect_each_once(files.dataset().shuffle(16).batch(2), seed);
}

}  // namespace
}  // namespace cairn
