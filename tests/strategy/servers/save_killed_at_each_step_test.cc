// A machine loses power at each step of a save: every call that changes the disk, before it, in the
// middle of it and after it. What a new run finds is the newest checkpoint that was committed, with
// its numbers, and no other that is not sound; the next save sweeps what was left.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <set>

#include "core/graph/ops.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using Moment = MemoryDisk::Moment;

constexpr const char* kFolder = "/checkpoints";

struct Kind {
  const char* name;
  bool links;  // false: as in a bucket
  // A checkpoint of so many is full. The fourth save dies: a delta of the third, or a full one.
  std::size_t full_every;
};

// A dense table and a hashed one, to whose rows each step adds one.
struct TwoTables {
  Variable dense, hashed;
  Function add;
  explicit TwoTables(ParameterServerStrategy& strategy)
      : dense(strategy.create_variable(
            {.name = "dense", .shape = {20, 2}, .initializer = Initializer::zeros()})),
        hashed(strategy.create_variable({.name = "hashed",
                                         .shape = {std::int64_t{1} << 30, 2},
                                         .initializer = Initializer::zeros(),
                                         .hashed = true})),
        add(strategy.function([this] {
          const Array ones(Tensor::of<float>({3, 2}, std::vector<float>(6, 1.0f)));
          dense.scatter_add(ids({0, 11, 19}), ones);
          hashed.scatter_add(ids({5, 1'000'000, 700'000'000}), ones);
        })) {}
  static Array ids(std::vector<std::int64_t> of) {
    return Tensor::of<std::int64_t>({static_cast<std::int64_t>(of.size())}, of);
  }
  // The number of steps that both tables have; -1: rows disagree.
  int steps() const {
    std::set<float> found;
    for (const Tensor& each : {dense.gather(ids({0, 11, 19})).eval(),
                               hashed.gather(ids({5, 1'000'000, 700'000'000})).eval()})
      found.insert(each.values<float>().begin(), each.values<float>().end());
    const Tensor others = dense.gather(ids({1, 12})).eval();
    for (const float value : others.values<float>())
      if (value != 0) return -1;
    return found.size() == 1 ? static_cast<int>(*found.begin()) : -1;
  }
};

class SaveKilledAtEachStep : public ::testing::TestWithParam<Kind> {
 protected:
  // Two lives of a run on one disk.
  struct Life {
    SimulatedCluster cluster;
    std::unique_ptr<ClusterCoordinator> coordinator;
    std::unique_ptr<TwoTables> tables;

    explicit Life(bool links) : cluster(options()) {
      cluster.disk().set_links(links);
      begin();
    }
    static SimulatedClusterOptions options() {
      SimulatedClusterOptions made{.ps = 2, .workers = 1};
      made.strategy.partitioner = FixedShardsPartitioner(2);
      made.strategy.engine.recovery = false;  // a save that the disk ends is not repeated
      return made;
    }
    void begin() {
      coordinator = std::make_unique<ClusterCoordinator>(cluster.strategy());
      tables = std::make_unique<TwoTables>(cluster.strategy());
    }
    // Every process is gone, and then there again.
    void restart() {
      tables.reset();
      coordinator.reset();
      cluster.kill_chief();
      for (int i : {0, 1}) cluster.kill_ps(i);
      cluster.kill_worker(0);
      cluster.disk().recover();
      for (int i : {0, 1}) cluster.start_ps(i);
      cluster.start_worker(0);
      cluster.start_chief();
      begin();
    }
    void train(int steps) {
      for (int i = 0; i < steps; ++i) coordinator->schedule(tables->add);
      coordinator->join(kPatience);
    }
    // Its number.
    std::uint64_t save(std::size_t full_every) {
      const std::string path =
          coordinator->save({.folder = kFolder, .keep_last = 2, .full_every = full_every});
      return *storage::CheckpointFolder::parse_name(path.substr(path.rfind('/') + 1));
    }
    // Checkpoints 1 to 3, of 2, 4 and 6 steps, and two steps more.
    void prepare(std::size_t full_every) {
      for (int i = 0; i < 3; ++i) {
        train(2);
        save(full_every);
      }
      train(2);
    }
  };

  void expect_found(Life& life, std::uint64_t least) {
    Disk& disk = life.cluster.disk();
    const auto store = storage::make_memory_row_store(disk);
    const storage::CheckpointFolder folder(disk, kFolder);
    const auto all = folder.list();
    ASSERT_FALSE(all.empty());
    for (const auto& entry : all)
      EXPECT_THAT(storage::verify(disk, *store, entry.path).problems, IsEmpty()) << entry.path;
    EXPECT_GE(all.back().id, least) << "a checkpoint that was committed is gone";
    EXPECT_LE(all.back().id, 4u);
    life.coordinator->restore(all.back().path);
    EXPECT_EQ(life.tables->steps(), 2 * static_cast<int>(all.back().id));
    EXPECT_EQ(storage::read_manifest(disk, all.back().path).global_step,
              2 * static_cast<std::int64_t>(all.back().id));
  }

  // After one more save there are checkpoints and the lock. A bucket has no folders and no files
  // half written, and rows of another session stay there: that one may be about to name them.
  void expect_swept(Life& life, std::size_t full_every) {
    Disk& disk = life.cluster.disk();
    life.train(1);
    life.save(full_every);
    std::set<std::string> known;
    for (const auto& entry : storage::CheckpointFolder(disk, kFolder).list()) {
      known.insert(entry.path.substr(entry.path.rfind('/') + 1));
      for (const std::string& name : disk.list(entry.path))
        EXPECT_FALSE(name.ends_with(".tmp")) << entry.path << "/" << name;
    }
    for (const std::string& name : disk.list(kFolder)) {
      const bool is_ours = storage::CheckpointFolder::parse_name(name).has_value();
      EXPECT_TRUE(!is_ours || known.contains(name)) << name << " is left";
      EXPECT_FALSE(name.ends_with(".tmp")) << name;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Of, SaveKilledAtEachStep,
                         ::testing::Values(Kind{"FullOnes", true, 1}, Kind{"Deltas", true, 8},
                                           Kind{"FullOnesInABucket", false, 1},
                                           Kind{"DeltasInABucket", false, 8}),
                         [](const auto& info) { return info.param.name; });

TEST_P(SaveKilledAtEachStep, TheNewestCommittedCheckpointIsThereWithItsNumbers) {
  const auto& [name, links, full_every] = GetParam();
  std::uint64_t steps = 0;
  {
    Life life(links);
    life.prepare(full_every);
    const std::uint64_t before = life.cluster.disk().steps();
    EXPECT_EQ(life.save(full_every), 4u);
    steps = life.cluster.disk().steps() - before;
  }
  EXPECT_GE(steps, 8u);
  for (const Moment moment : {Moment::kBefore, Moment::kWithin, Moment::kAfter})
    for (std::uint64_t step = 0; step < steps; ++step) {
      SCOPED_TRACE(::testing::Message() << "step " << step << " of " << steps << ", moment "
                                        << static_cast<int>(moment));
      Life life(links);
      life.prepare(full_every);
      life.cluster.disk().crash_at_step(step, moment);
      std::uint64_t least = 3;
      try {
        least = life.save(full_every);
      } catch (const Error&) {
      }
      EXPECT_TRUE(life.cluster.disk().down());
      life.restart();
      expect_found(life, least);
      if (links) expect_swept(life, full_every);
    }
}

}  // namespace
}  // namespace cairn
