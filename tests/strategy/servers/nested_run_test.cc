// run() within a function that is being traced becomes part of that function.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

float value_of(const Variable& v) { return v.read().eval().item<float>(); }

// Every case below holds for one device, for call() of a parameter-server strategy, and for its
// scheduled functions.
struct Place {
  virtual ~Place() = default;
  virtual Strategy& strategy() = 0;
  virtual std::vector<Tensor> call(Function& function, const std::vector<RunArgument>& arguments) {
    return strategy().call(function, arguments);
  }
  virtual RunArgument range(std::int64_t n) = 0;
  // which is raised once more, by the next schedule or join
  virtual void hear_the_error_of_a_closure() {}
};
struct OneDevice : Place {
  OneDeviceStrategy on;
  Strategy& strategy() override { return on; }
  RunArgument range(std::int64_t n) override { return on.iterate(Dataset::range(n).batch(1)); }
};
struct OnServers : Place {
  SimulatedCluster cluster{{.ps = 2, .workers = 2}};
  ClusterCoordinator coordinator{cluster.strategy()};
  Strategy& strategy() override { return cluster.strategy(); }
  RunArgument range(std::int64_t n) override {
    return coordinator.create_shared_dataset(Dataset::range(n).batch(1));
  }
};
struct Scheduled : OnServers {
  std::vector<Tensor> call(Function& function, const std::vector<RunArgument>& arguments) override {
    std::vector<ScheduleArgument> scheduled;
    for (const RunArgument& argument : arguments)
      if (auto* tensor = std::get_if<Tensor>(&argument))
        scheduled.emplace_back(*tensor);
      else
        scheduled.emplace_back(std::dynamic_pointer_cast<const PerWorkerDataset>(
            std::get<std::shared_ptr<const IteratorSource>>(argument)));
    return coordinator.schedule(function, scheduled).get_all(kPatience);
  }
  void hear_the_error_of_a_closure() override {
    EXPECT_THROW(coordinator.join(kPatience), InvalidArgumentError);
  }
};

template <typename Where>
struct NestedRun : ::testing::Test {
  Where place;
  Strategy& strategy() { return place.strategy(); }
  std::vector<Tensor> call(Function& function, const std::vector<RunArgument>& arguments = {}) {
    return place.call(function, arguments);
  }
  Variable scalar(const std::string& name, float value = 0) {
    return strategy().create_variable(
        {.name = name, .shape = {}, .initializer = Initializer::constant(value)});
  }
};
using Places = ::testing::Types<OneDevice, OnServers, Scheduled>;
TYPED_TEST_SUITE(NestedRun, Places);

TYPED_TEST(NestedRun, TakesPlaceWheneverTheOuterFunctionRuns) {
  Variable w = this->scalar("w");
  Function inner = this->strategy().function([&] { w.assign_add(1.0f); });
  Function outer = this->strategy().function([&] { this->strategy().run(inner); });
  for (int i = 0; i < 3; ++i) this->call(outer);
  EXPECT_EQ(value_of(w), 3.0f);
}

TYPED_TEST(NestedRun, TakesPlaceAsOftenAsItIsCalledInProgramOrder) {
  Variable w = this->scalar("w", 1);
  Function doubled = this->strategy().function([&] { w.assign(w.read() * 2); });
  Function outer = this->strategy().function([&] {
    this->strategy().run(doubled);
    w.assign_add(1);
    this->strategy().run(doubled);
    return w.read();
  });
  EXPECT_EQ(this->call(outer).at(0).template item<float>(), 6.0f);
  EXPECT_EQ(this->call(outer).at(0).template item<float>(), 26.0f);
}

TYPED_TEST(NestedRun, TakesRecordedArgumentsAndGivesRecordedResults) {
  Function inner = this->strategy().function([](Array x, Array y) {
    return std::vector<Array>{x + y, x * y};
  });
  Function outer = this->strategy().function([&](Array x) {
    RunResult both = this->strategy().run(inner, {x, 3.0f});
    EXPECT_EQ(both.size(), 2u);
    return both[0] - both[1];
  });
  EXPECT_EQ(this->call(outer, {Tensor::scalar(2.0f)}).at(0).template item<float>(), -1.0f);
  // not the first call's
  EXPECT_EQ(this->call(outer, {Tensor::scalar(5.0f)}).at(0).template item<float>(), -7.0f);
}

TYPED_TEST(NestedRun, ReadsTheNextElementOfTheOuterFunctionsIterator) {
  Function inner =
      this->strategy().function([](Iterator input) { return input.get_next().features["value"]; });
  Function outer = this->strategy().function([&](Iterator input) {
    Array first = this->strategy().run(inner, {input})[0];
    Array second = this->strategy().run(inner, {input})[0];
    return first * 10 + second;
  });
  RunArgument data = this->place.range(4);
  EXPECT_EQ(this->call(outer, {data}).at(0).template item<std::int64_t>(), 1);
  EXPECT_EQ(this->call(outer, {data}).at(0).template item<std::int64_t>(), 23);
  EXPECT_THROW(this->call(outer, {data}), OutOfRangeError);
}

TYPED_TEST(NestedRun, TrainsAndGradientsPassThroughIt) {
  Variable w = this->scalar("w", 1);
  nn::SGD optimizer({.learning_rate = 0.25f});
  Function loss_of =
      this->strategy().function([&](Array target) { return square(w.read() - target); });
  Function step = this->strategy().function([&] {
    Array loss = this->strategy().run(loss_of, {3.0f})[0];
    optimizer.minimize(loss);
    return loss;
  });
  this->call(step);
  this->call(step);
  EXPECT_EQ(value_of(w), 2.5f);  // 1, 2, 2.5
}

TYPED_TEST(NestedRun, AnErrorOfTheInnerFunctionIsThatOfTheOuterOne) {
  Variable table = this->strategy().create_variable({.name = "table", .shape = {4, 2}});
  Function look = this->strategy().function([&](Array ids) { return table.gather(ids); });
  Function outer = this->strategy().function(
      [&](Array ids) { return this->strategy().run(look, {ids})[0] * 2.0f; });
  const Tensor beyond = Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{9});
  EXPECT_THAT(message_of([&] { this->call(outer, {beyond}); }), HasSubstr("table"));
  this->place.hear_the_error_of_a_closure();

  Function product = this->strategy().function([](Array a) { return matmul(a, a); });
  Function wrong =
      this->strategy().function([&](Array a) { return this->strategy().run(product, {a})[0]; });
  EXPECT_THAT(message_of([&] { this->call(wrong, {Tensor::scalar(1.0f)}); }), HasSubstr("matmul"));
  EXPECT_EQ(this->call(outer, {Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{1})})
                .at(0)
                .elements(),
            2);
}

TYPED_TEST(NestedRun, WhatCannotBeRecordedIsRefusedWithTheCure) {
  Strategy& strategy = this->strategy();
  RunArgument data = this->place.range(4);
  Function next =
      strategy.function([](Iterator input) { return input.get_next().features["value"]; });
  Function captures = strategy.function([&] { return strategy.run(next, {data})[0]; });
  EXPECT_THAT(message_of([&] { this->call(captures); }),
              HasSubstr("pass the dataset to that function"));

  Function one = strategy.function([](Array x) { return x + 1.0f; }, "one");
  Function without = strategy.function([&] { return strategy.run(one)[0]; });
  EXPECT_THAT(message_of([&] { this->call(without); }),
              HasSubstr("one takes 1 arguments; 0 were passed"));

  Function asks = strategy.function(
      [&](Array x) { return Array(strategy.run(one, {x})[0].template item<float>()); });
  EXPECT_THAT(message_of([&] { this->call(asks, {Tensor::scalar(1.0f)}); }),
              HasSubstr("Return it from there"));

  Function itself;
  itself = strategy.function([&] { strategy.run(itself); }, "itself");
  EXPECT_THAT(message_of([&] { this->call(itself); }), HasSubstr("\"itself\" runs itself"));

  OneDeviceStrategy other;
  Function elsewhere = strategy.function([&](Array x) { return other.run(one, {x})[0]; });
  EXPECT_THAT(message_of([&] { this->call(elsewhere, {Tensor::scalar(1.0f)}); }),
              HasSubstr("is not of this strategy"));
  EXPECT_EQ(this->call(one, {Tensor::scalar(1.0f)}).at(0).template item<float>(), 2.0f);
}

TEST(NestedSchedule, WithinAFunctionThatIsBeingTracedIsRefused) {
  OnServers place;
  Variable w = place.strategy().create_variable({.name = "w", .shape = {}});
  Function inner = place.strategy().function([&] { w.assign_add(1.0f); }, "inner");
  Function outer = place.strategy().function([&] { place.coordinator.schedule(inner); });
  EXPECT_THAT(message_of([&] { place.coordinator.schedule(outer); }), HasSubstr("strategy.run()"));
  place.coordinator.join(kPatience);
  EXPECT_EQ(value_of(w), 0.0f);
}

TEST(Run, OutsideOfAFunctionGivesValues) {
  OneDeviceStrategy strategy;
  Function sums = strategy.function([](Array x) { return std::vector<Array>{x + 1, x + 2}; });
  RunResult result = strategy.run(sums, {Array(1.0f) + Array(1.0f)});
  EXPECT_EQ(result.size(), 2u);
  EXPECT_EQ(result[1].item<float>(), 4.0f);
  const std::vector<Tensor> tensors = result;
  EXPECT_EQ(tensors.front().item<float>(), 3.0f);
  EXPECT_EQ((result.front() * 2).eval().item<float>(), 6.0f);
}

TEST(Run, ReadsADatasetThatWasDistributedFromAFunction) {
  OneDeviceStrategy strategy;
  auto made = strategy.distribute_datasets_from_function([](const InputContext& context) {
    EXPECT_EQ(context.num_input_pipelines, 1);
    return Dataset::range(6).shard(context).batch(context.get_per_replica_batch_size(3));
  });
  Function next = strategy.function(
      [](Iterator input) { return reduce_sum(input.get_next().features["value"]); });
  auto batches = strategy.iterate(made);
  EXPECT_EQ(strategy.run(next, {batches})[0].item<std::int64_t>(), 3);
  EXPECT_EQ(strategy.run(next, {batches})[0].item<std::int64_t>(), 12);
}

}  // namespace
}  // namespace cairn
