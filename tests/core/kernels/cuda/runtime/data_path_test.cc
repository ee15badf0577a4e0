// The traffic between the host and a GPU in a step whose variables are elsewhere, as those of a
// worker are on ps: how often the host waits, and what it then finds.
#include <gmock/gmock.h>

#include "core/kernels/cuda/device.h"
#include "tests/core/executor_testing.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DataPath : public Executor {
 protected:
  struct Waited {
    int times = 0;
    int blocking_copies = 0;
    bool operator==(const Waited&) const = default;
  };
  // The second of two runs, for which nothing has to be prepared.
  Waited waits_of(const std::shared_ptr<const Plan>& plan, const std::vector<Tensor>& arguments) {
    run(plan, there, store, context, arguments, {});
    const FakeDriver::Counts before = driver.counts();
    run(plan, there, store, context, arguments, {});
    return {driver.counts().waits - before.waits,
            driver.counts().blocking_copies - before.blocking_copies};
  }
  std::vector<Variable> variables(int n, const Shape& shape) {
    std::vector<Variable> made;
    for (int i = 0; i < n; ++i)
      made.push_back(variable(str("v", names_++), noise(shape, i), {kSgd}));
    return made;
  }

  FakeDriver driver;
  std::unique_ptr<Device> gpu = cuda::make_device("gpu:0", driver, cpu_device());
  Workspace there{*gpu};
  int names_ = 0;
};

// A checked loss, layers and tables with their gradients, rates that the graph computes, and three
// outputs.
TEST_F(DataPath, AStepThatPushesWaitsOnceHoweverManyValuesLeaveTheDevice) {
  for (const int n : {1, 4}) {
    const std::vector<Variable> layers = variables(n, {4, 4}), tables = variables(n, {9, 4});
    const auto made = plan(trace_function({ints({kAny}), floats({})}, [&](const auto& in) {
      Array h = Array(noise({5, 4}, 1));
      for (const Variable& table : tables) h = h + table.gather(arg(in, 0));
      for (const Variable& layer : layers) h = tanh(matmul(h, layer.read()));
      const Array loss = check_numerics(mean(square(h)), "the loss");
      for (const auto& gradient : variable_gradients(loss)) {
        const Array rate = arg(in, 1) * 0.5f;
        if (gradient.is_sparse())
          gradient.variable.update(kSgd, gradient.sparse, rate);
        else
          gradient.variable.update(kSgd, gradient.dense, rate);
      }
      return std::vector<Array>{loss, sum(h), h};
    }));
    EXPECT_EQ(waits_of(made, {ids_of({8, 0, 8, 3, 3}), tensor({}, {0.1f})}), (Waited{1, 0})) << n;
  }
}

TEST_F(DataPath, EachWaveThatPushesIsWaitedForOnce) {
  const Variable first = variable("first", tensor({2}, {1, 2}), {kSgd}),
                 second = variable("second", tensor({2}, {3, 4}), {kSgd});
  const auto made = plan(trace_function({floats({2})}, [&](const auto& in) {
    first.assign(arg(in, 0) * 2.0f);
    second.assign(arg(in, 0) * 3.0f);
    const Array sum = first.read() + second.read();
    first.assign(sum);
    second.assign(sum * 2.0f);
    return std::vector<Array>{sum, sum * 3.0f};
  }));
  EXPECT_EQ(waits_of(made, {tensor({2}, {1, 10})}), (Waited{2, 0}));
  const auto out = run(made, there, store, context, {tensor({2}, {1, 10})}, {});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(5, 50));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(15, 150));
}

TEST_F(DataPath, OutputsAreWaitedForOnce) {
  const auto made = plan(trace_function({floats({3})}, [&](const auto& in) {
    return std::vector<Array>{exp(arg(in, 0)), arg(in, 0) * 2.0f, sum(arg(in, 0))};
  }));
  EXPECT_EQ(waits_of(made, {noise({3}, 1)}), (Waited{1, 0}));
}

TEST_F(DataPath, ComputedIdsOfSeveralTablesAreWaitedForOnce) {
  const std::vector<Variable> tables = variables(3, {9, 4});
  const auto made = plan(trace_function({ints({kAny})}, [&](const auto& in) {
    Array all = Array(tensor({4}, {0, 0, 0, 0}));
    for (std::size_t i = 0; i < tables.size(); ++i)
      all = all + tables[i].gather(arg(in, 0) + static_cast<std::int64_t>(i));
    return std::vector<Array>{all};
  }));
  EXPECT_EQ(waits_of(made, {ids_of({1, 2, 6})}), (Waited{2, 0}));  // and for the output
}

TEST_F(DataPath, WhatIsReducedIsWaitedForOnce) {
  auto traced = trace_function({floats({2})}, [&](const auto& in) {
    return std::vector<Array>{all_reduce(ReduceOp::kSum, exp(arg(in, 0))),
                              all_reduce(ReduceOp::kSum, arg(in, 0))};
  });
  context.replicas = 2;
  const auto made = make_plan(traced.graph, {}, {.replicas = 2});
  Step step(made, there, store, context, {{tensor({2}, {0, 1})}, {}});
  const Step::Next needed = step.next();
  EXPECT_EQ(driver.counts().waits, 1);
  for (const AllReduceBuffer& reduction : std::get<Step::AllReduce>(needed).reductions)
    reinterpret_cast<float*>(reduction.values)[0] += 40;  // the other replica's share
  EXPECT_TRUE(std::holds_alternative<Step::Await>(step.next()));
  EXPECT_TRUE(std::holds_alternative<Step::Finished>(step.next()));
  EXPECT_EQ(driver.counts().waits, 2);
  EXPECT_THAT(floats_of(step.outputs()[0]), ElementsAre(41, std::exp(1.0f)));
  EXPECT_THAT(floats_of(step.outputs()[1]), ElementsAre(40, 1));
}

// A fault is found at the wait; what was begun to be copied then belongs to a step that is gone.
TEST_F(DataPath, AStepThatFailsPushesNothingAndTheNextOneIsWhole) {
  const Variable v = variable("v", tensor({2}, {1, 2}), {kSgd});
  const auto made = plan(trace_function({floats({3, 2}), ints({2})}, [&](const auto& in) {
    const Array rows = gather(arg(in, 0), arg(in, 1));
    v.update(kSgd, reduce_sum(rows, {0}), 1.0f);
    return std::vector<Array>{rows};
  }));
  const Tensor table = tensor({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(message_of([&] {
                run(made, there, store, context, {table, ids_of({0, 3})}, {});
              }),
              HasSubstr("3"));
  EXPECT_EQ(std::ranges::count(store.kinds(), "push"), 0);
  const auto out = run(made, there, store, context, {table, ids_of({0, 2})}, {});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(floats_of(store.calls.back().updates[0].value), ElementsAre(6, 8));
}

TEST_F(DataPath, AFailedCheckPushesWhatDoesNotDependOnIt) {
  const Variable bad = variable("bad", tensor({1}, {0}), {kSgd}),
                 good = variable("good", tensor({1}, {1}), {kSgd});
  const auto made = plan(trace_function({floats({1})}, [&](const auto& in) {
    const Array loss = check_numerics(sum(log(bad.read())), "the loss");
    bad.update(kSgd, variable_gradients(loss)[0].dense, 0.1f);
    good.assign(arg(in, 0) * 2.0f);
    return std::vector<Array>{loss};
  }));
  EXPECT_THAT(message_of([&] { run(made, there, store, context, {tensor({1}, {3})}, {}); }),
              HasSubstr("the loss is -inf"));
  ASSERT_EQ(store.calls.back().kind, "push");
  ASSERT_EQ(store.calls.back().updates.size(), 1u);
  EXPECT_THAT(floats_of(store.calls.back().updates[0].value), ElementsAre(6));
}

// ---- values of the next run ----

// The device as one workspace has it.
struct SentAhead : ::testing::Test {
  FakeDriver driver;
  std::unique_ptr<Device> gpu = cuda::make_device("gpu:0", driver, cpu_device()),
                          queue = gpu->open();
  std::shared_ptr<std::byte> memory = queue->allocate(4096);

  void copy_in(const Tensor& value) {
    queue->copy(Device::Direction::kIn, memory.get(), value.raw(), value.bytes());
  }
  std::vector<float> there(std::int64_t n) {
    Tensor back(DType::kFloat32, {n});
    queue->copy(Device::Direction::kOut, back.mutable_raw(), memory.get(), back.bytes());
    return floats_of(back);
  }
};

// The second values overwrite the first where these were kept, but no sooner than they were taken.
TEST_F(SentAhead, EachRunFindsItsOwnValues) {
  std::vector<std::vector<float>> found;
  Tensor now = tensor({2}, {0, 100});
  for (int run = 1; run <= 5; ++run) {
    copy_in(now);
    const Tensor next = tensor({2}, {static_cast<float>(run), 100});
    queue->send_ahead(std::vector<Tensor>{noise({200}, run), next});
    found.push_back(there(2));
    now = next;
  }
  for (std::size_t run = 0; run < 5; ++run)
    EXPECT_THAT(found[run], ElementsAre(static_cast<float>(run), 100));
}

TEST_F(SentAhead, NothingWaitsButWhatReadsTheOutcome) {
  const Tensor value = tensor({2}, {1, 2});
  queue->send_ahead({&value, 1});
  copy_in(value);
  queue->send_ahead({&value, 1});
  copy_in(value);
  EXPECT_EQ(driver.counts().waits, 0);
  EXPECT_THAT(there(2), ElementsAre(1, 2));
  EXPECT_EQ(driver.counts().waits, 1);
}

TEST_F(SentAhead, AValueThatWasForgottenIsCopiedAsEver) {
  const Tensor first = tensor({2}, {1, 2}), second = tensor({2}, {3, 4});
  queue->send_ahead({&first, 1});
  queue->send_ahead({&second, 1});
  copy_in(first);
  EXPECT_THAT(there(2), ElementsAre(1, 2));
  copy_in(second);
  EXPECT_THAT(there(2), ElementsAre(3, 4));
}

// Large ones, so that the place where they are kept has to grow, and the pinned ring goes round.
TEST_F(SentAhead, ValuesOfAnySizeArriveWhole) {
  const Tensor large = noise({3'000'000}, 1), small = tensor({1}, {7});
  memory = queue->allocate(large.bytes());
  for (int i = 0; i < 4; ++i) {
    queue->send_ahead(std::vector<Tensor>{small, large});
    copy_in(large);
    EXPECT_EQ(there(3'000'000), floats_of(large));
  }
}

TEST_F(DataPath, ARunAsksOnceForTheNextOnesValuesBeforeTheHostWaits) {
  const auto made = plan(trace_function({floats({2})}, [&](const auto& in) {
    return std::vector<Array>{check_numerics(sum(exp(arg(in, 0))), "the sum"), arg(in, 0) * 2.0f};
  }));
  const Tensor next = tensor({2}, {3, 4});
  int calls = 0;
  RunInputs inputs{{tensor({2}, {1, 2})}, {}};
  inputs.next = [&] {
    ++calls;
    EXPECT_EQ(driver.counts().waits, 0);
    return std::vector<Tensor>{next};
  };
  run(made, there, store, context, inputs);
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(floats_of(run(made, there, store, context, {next}, {})[1]), ElementsAre(6, 8));
  run(made, workspace, store, context, inputs);
  EXPECT_EQ(calls, 1);  // the CPU has them where they lie
}

}  // namespace
}  // namespace cairn
