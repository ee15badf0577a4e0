// Checkpoints of several workers: one writes, all read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/strategy/in_sync/workers_in_step.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::on_workers;
using testing::value_of;
using MultiWorker = MultiWorkerMirroredStrategy;

VariableSpec sum_on_read() {
  return {.name = "count",
          .shape = {},
          .aggregation = Aggregation::kSum,
          .synchronization = Synchronization::kOnRead};
}

// A step in which worker i counts i + 1.
void count(MultiWorker& strategy, Variable variable) {
  Function step = strategy.function([=] {
    variable.assign_add(
        Array(static_cast<float>(get_replica_context().replica_id_in_sync_group() + 1)));
  });
  strategy.run(step);
}

TEST(MultiWorkerCheckpoint, OneWritesAndAllHaveItsPath) {
  tools::TempFolder folder;
  std::vector<std::string> paths(2);
  const auto errors = on_workers(2, [&](MultiWorker& strategy) {
    Variable v = strategy.create_variable(sum_on_read());
    count(strategy, v);
    paths[static_cast<std::size_t>(strategy.id_in_cluster())] =
        strategy.save({.folder = folder.path()});
    EXPECT_TRUE(std::filesystem::exists(paths[static_cast<std::size_t>(strategy.id_in_cluster())]));
    count(strategy, v);  // the copies are their own again
    EXPECT_EQ(value_of(v), 6.0f);
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_EQ(paths[0], paths[1]);
  const auto made = std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(
      std::count_if(begin(made), end(made), [](const auto& each) { return each.is_directory(); }),
      1);
}

TEST(MultiWorkerCheckpoint, IsIndependentOfTheNumberOfWorkers) {
  tools::TempFolder folder;
  std::string saved;
  EXPECT_THAT(on_workers(2,
                         [&](MultiWorker& strategy) {
                           count(strategy, strategy.create_variable(sum_on_read()));
                           const auto path = strategy.save({.folder = folder.path()});
                           if (strategy.is_chief()) saved = path;
                         }),
              Each(""));
  OneDeviceStrategy one;
  Variable alone = one.create_variable(sum_on_read());
  one.restore(saved).assert_consumed();
  EXPECT_EQ(value_of(alone), 3.0f);
  EXPECT_THAT(on_workers(3,
                         [&](MultiWorker& strategy) {
                           Variable v = strategy.create_variable(sum_on_read());
                           ASSERT_TRUE(strategy.restore_newest(folder.path()));
                           EXPECT_EQ(value_of(v), 3.0f);
                           EXPECT_EQ(strategy.global_step(), 1);
                         }),
              Each(""));
}

// A dataset that all read alike, and a pipeline of each worker's own, which end apart.
void workers_started_again_take_the_rest_of_their_data(int replicas) {
  tools::TempFolder folder;
  using Sums = std::vector<std::vector<std::int64_t>>;
  auto sums_of = [&](bool resumes, int steps, bool saves) {
    Sums sums(2);
    const auto body = [&](MultiWorker& strategy) {
      Variable v = strategy.create_variable(sum_on_read());
      if (resumes) {
        ASSERT_TRUE(strategy.restore_newest(folder.path()));
      }
      auto shared = strategy.iterate(Dataset::range(24).shuffle(24, 5).batch(4));
      auto own = strategy.iterate([=](const InputContext& context) {
        return Dataset::range((context.input_pipeline_id == 0 ? 20 : 8) * replicas)
            .shuffle(20, 3 + static_cast<std::uint64_t>(context.input_pipeline_id))
            .batch(2);
      });
      Function step = strategy.function([](Iterator a, Iterator b) {
        return sum(a.get_next().features["value"]) * 100 + sum(b.get_next().features["value"]);
      });
      for (int i = 0; i < steps; ++i)
        for (const RunValue& each :
             strategy.experimental_local_results(strategy.run(step, {shared, own})[0]))
          sums[static_cast<std::size_t>(strategy.id_in_cluster())].push_back(
              each.item<std::int64_t>());
      if (saves) strategy.save({.folder = folder.path()});
      (void)v;
    };
    EXPECT_THAT(on_workers(2, body, {.devices = testing::devices(replicas)}), Each(""));
    return sums;
  };
  Sums whole = sums_of(false, 6, false);
  const Sums first = sums_of(false, 3, true), rest = sums_of(true, 3, false);
  for (std::size_t worker = 0; worker < 2; ++worker) {
    std::vector<std::int64_t> both = first[worker];
    both.insert(both.end(), rest[worker].begin(), rest[worker].end());
    EXPECT_EQ(both, whole[worker]) << worker;
  }
}

TEST(MultiWorkerCheckpoint, WorkersStartedAgainTakeTheRestOfTheirData) {
  workers_started_again_take_the_rest_of_their_data(1);
}
TEST(MultiWorkerCheckpoint, WorkersOfTwoReplicasStartedAgainTakeTheRestOfTheirData) {
  workers_started_again_take_the_rest_of_their_data(2);
}

TEST(MultiWorkerCheckpoint, ThereMayBeNoneYet) {
  tools::TempFolder folder;
  EXPECT_THAT(on_workers(2,
                         [&](MultiWorker& strategy) {
                           EXPECT_FALSE(strategy.restore_newest(folder.path()));
                           EXPECT_EQ(strategy.global_step(), 0);
                         }),
              Each(""));
}

TEST(MultiWorkerCheckpoint, TheChiefsFailureIsEverybodys) {
  const auto errors = on_workers(2, [](MultiWorker& strategy) {
    Variable v = strategy.create_variable(sum_on_read());
    EXPECT_THROW(strategy.save({.folder = ""}), InvalidArgumentError);
    count(strategy, v);  // the group goes on
    strategy.save({.folder = ""});
  });
  EXPECT_THAT(errors, Each(HasSubstr("a checkpoint needs a folder")));
}

TEST(MultiWorkerCheckpoint, WorkersThatReadDifferentOnesAreToldSo) {
  tools::TempFolder folder, missing;
  EXPECT_THAT(on_workers(2,
                         [&](MultiWorker& strategy) {
                           strategy.create_variable(sum_on_read());
                           strategy.save({.folder = folder.path()});
                         }),
              Each(""));
  const auto errors = on_workers(2, [&](MultiWorker& strategy) {
    strategy.create_variable(sum_on_read());
    const auto& own = strategy.is_chief() ? folder : missing;
    strategy.restore(own.path() + "/ckpt-00000001");
  });
  EXPECT_THAT(errors[0], HasSubstr("worker 1 could not restore"));
  EXPECT_THAT(errors[1], HasSubstr("NotFound"));
}

// ---- several replicas of a worker ----

VariableSpec weight() {
  return {.name = "weight", .shape = {3}, .initializer = Initializer::uniform(-1, 1)};
}
Array loss_of(const Variable& weight, const Array& x) { return sum(square(weight.read() * x)); }

std::vector<float> floats_of(const Variable& variable) {
  const Tensor value = variable.read().eval();
  const auto all = value.values<float>();
  return {all.begin(), all.end()};
}

// A step of Adam, whose slots are in the checkpoint too, of which each replica has the n-th part.
void train(Strategy& strategy, const Variable& weight, nn::Adam& optimizer) {
  const auto replicas = static_cast<float>(strategy.num_replicas_in_sync());
  Function step = strategy.function([&] {
    const Array loss = loss_of(weight, Array(2.0f)) / Array(replicas);
    optimizer.minimize(loss);
    return loss;
  });
  strategy.run(step);
}

TEST(MultiWorkerCheckpoint, OfSeveralReplicasOfAWorkerIsThatOfOneDevice) {
  tools::TempFolder folder;
  std::string saved;
  std::vector<float> trained;
  EXPECT_THAT(on_workers(2,
                         [&](MultiWorker& strategy) {
                           auto scope = strategy.scope();
                           Variable w = strategy.create_variable(weight());
                           Variable sum = strategy.create_variable(sum_on_read());
                           nn::Adam optimizer({.learning_rate = 0.1f});
                           train(strategy, w, optimizer);
                           count(strategy, sum);
                           const auto path = strategy.save({.folder = folder.path()});
                           train(strategy, w, optimizer);
                           if (!strategy.is_chief()) return;
                           saved = path;
                           trained = floats_of(w);
                         },
                         {.check_replicas = true, .devices = testing::devices(2)}),
              Each(""));
  OneDeviceStrategy one;
  auto scope = one.scope();
  Variable w = one.create_variable(weight());
  Variable sum = one.create_variable(sum_on_read());
  nn::Adam optimizer({.learning_rate = 0.1f});
  train(one, w, optimizer);  // makes the slots
  one.restore(saved).assert_consumed();
  EXPECT_EQ(value_of(sum), 10.0f);
  EXPECT_EQ(one.global_step(), 2);
  train(one, w, optimizer);
  EXPECT_THAT(floats_of(w), ::testing::Pointwise(::testing::FloatNear(1e-6f), trained));
}

TEST(MultiWorkerCheckpoint, OfOneDeviceRestoresOnAllReplicasOfAllWorkers) {
  tools::TempFolder folder;
  OneDeviceStrategy one;
  std::vector<float> saved;
  {
    auto scope = one.scope();
    Variable w = one.create_variable(weight());
    Variable sum = one.create_variable(sum_on_read());
    nn::Adam optimizer({.learning_rate = 0.1f});
    train(one, w, optimizer);
    sum.assign(Array(12.0f));
    one.save({.folder = folder.path()});
    train(one, w, optimizer);
    saved = floats_of(w);
  }
  EXPECT_THAT(on_workers(2,
                         [&](MultiWorker& strategy) {
                           auto scope = strategy.scope();
                           Variable w = strategy.create_variable(weight());
                           Variable sum = strategy.create_variable(sum_on_read());
                           nn::Adam optimizer({.learning_rate = 0.1f});
                           train(strategy, w, optimizer);
                           ASSERT_TRUE(strategy.restore_newest(folder.path()));
                           EXPECT_EQ(value_of(sum), 12.0f);
                           Function share = strategy.function([&] { return sum.read(); });
                           for (const RunValue& each :
                                strategy.experimental_local_results(strategy.run(share)[0]))
                             EXPECT_EQ(each.item<float>(), 3.0f);
                           train(strategy, w, optimizer);
                           EXPECT_THAT(floats_of(w),
                                       ::testing::Pointwise(::testing::FloatNear(1e-6f), saved));
                         },
                         {.check_replicas = true, .devices = testing::devices(2)}),
              Each(""));
}

}  // namespace
}  // namespace cairn
