// The executor on a device with memory of its own: it computes what it does on the CPU, and reaches
// for nothing behind the device's back.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "core/kernels/cpu/elementwise.h"
#include "core/kernels/cpu/kernel_table.h"
#include "tests/core/executor_testing.h"
#include "tests/core/fake_device.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A step of a table and a layer, sparse and dense updates, and a read after an update.
class OnDevice : public Executor {
 protected:
  OnDevice() {
    table_ = variable("table", noise({9, 4}, 1), {kSgd});
    layer_ = variable("layer", noise({4, 3}, 2), {kSgd});
    steps_ = variable("steps", Tensor::scalar<std::int64_t>(5));
    scale_ = variable("scale", tensor({1}, {2}));
  }

  ConcreteFunction step() const {
    return trace_function({ints({kAny}), floats({kAny, 3})}, [&](const auto& in) {
      Array rows = table_.gather(arg(in, 0));
      Array out = tanh(matmul(rows, layer_.read()) + Array(tensor({3}, {1, 2, 3})));
      Array loss = check_numerics(mean(square(out - arg(in, 1))), "the loss");
      for (const auto& gradient : variable_gradients(loss)) {
        if (gradient.is_sparse())
          gradient.variable.update(kSgd, gradient.sparse, 0.5f);
        else
          gradient.variable.update(kSgd, gradient.dense, 0.5f);
      }
      steps_.assign_add(std::int64_t{1});
      scale_.assign(scale_.read() * 3.0f);
      return std::vector<Array>{loss, scale_.read(), arg(in, 1), steps_.read()};
    });
  }

  std::vector<Tensor> run_step(Workspace& workspace) {
    return run(plan(step()), workspace, store, context, {ids_of({8, 0, 8, 3, 3}), noise({5, 3}, 3)},
               {});
  }

  Variable table_, layer_, steps_, scale_;
};

std::vector<std::vector<std::byte>> bytes_of(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<std::byte>> all;
  for (const Tensor& t : tensors) all.emplace_back(t.raw(), t.raw() + t.bytes());
  return all;
}

std::vector<std::vector<std::byte>> updates_of(const RecordingStore& store) {
  std::vector<Tensor> values;
  for (const auto& call : store.calls)
    for (const Update& update : call.updates) values.push_back(update.value);
  return bytes_of(values);
}

struct BothDevices : OnDevice, ::testing::WithParamInterface<FakeDevice::Fuses> {};

TEST_P(BothDevices, AStepGivesTheBitsOfTheCpu) {
  const auto outputs = bytes_of(run_step(workspace));
  const auto updates = updates_of(store);
  store.local.reset(0);
  store.local.reset(1);
  store.local.reset(2);
  store.local.reset(3);
  store.calls.clear();
  FakeDevice device(GetParam());
  Workspace other(device);
  EXPECT_EQ(bytes_of(run_step(other)), outputs);
  EXPECT_EQ(updates_of(store), updates);
  EXPECT_GT(device.counts().runs, 0);
}
INSTANTIATE_TEST_SUITE_P(Fusing, BothDevices,
                         ::testing::Values(FakeDevice::Fuses::kYes, FakeDevice::Fuses::kNo));

TEST_F(OnDevice, MemoryIsAllocatedForTheFirstStepOnly) {
  FakeDevice device;
  Workspace other(device);
  const auto made = plan(step());
  for (int i = 0; i < 3; ++i)
    run(made, other, store, context, {ids_of({8, 0}), noise({2, 3}, 3)}, {});
  EXPECT_EQ(device.counts().allocations, 2);  // for its values, and for constants
}

TEST_F(OnDevice, OnlyWhatComesAndGoesIsCopied) {
  FakeDevice device;
  Workspace other(device);
  Variable v = variable("v", tensor({2}, {1, 2}), {kSgd});
  run(plan(trace_function({floats({2})},
                          [&](const auto& in) {
                            Array x = exp(arg(in, 0)) * v.read();
                            v.update(kSgd, x, 0.5f);
                            return x;
                          })),
      other, store, context, {tensor({2}, {3, 4})}, {});
  EXPECT_EQ(device.counts().copies_in, 3);   // the argument, the rate, the variable
  EXPECT_EQ(device.counts().copies_out, 2);  // the update, the output; the rate is a constant
  EXPECT_EQ(device.counts().copies_within, 0);
}

TEST_F(OnDevice, AnUpdateIsCopiedToWhereTheStoreWantsIt) {
  FakeDevice device;
  Workspace other(device);
  store.place.resize(12 * sizeof(float));
  store.placed_variable = 1;  // the layer
  run_step(other);
  for (const auto& call : store.calls)
    for (const Update& update : call.updates)
      if (update.variable == store.placed_variable) {
        EXPECT_EQ(std::memcmp(store.place.data(), update.value.raw(), store.place.size()), 0);
      }
  EXPECT_NE(store.place, std::vector<std::byte>(store.place.size()));
}

TEST_F(OnDevice, AFailedCheckNamesWhatItFoundThere) {
  FakeDevice device;
  Workspace other(device);
  Variable w = variable("w", tensor({1}, {0}), {kSgd});
  auto made = plan(trace_function({}, [&](const auto&) {
    Array loss = check_numerics(sum(log(w.read())), "the loss");
    w.update(kSgd, variable_gradients(loss)[0].dense, 0.1f);
    return loss;
  }));
  EXPECT_THAT(message_of([&] { run(made, other, store, context, {}, {}); }),
              AllOf(HasSubstr("the loss is -inf"), HasSubstr("update"), HasSubstr("\"w\"")));
}

TEST_F(OnDevice, StringsStayWithTheHost) {
  FakeDevice device;
  Workspace other(device);
  auto traced = trace_function({TensorType{DType::kString, {2}}}, [&](const auto& in) {
    Array joined = concat({arg(in, 0), Array(Tensor::strings({1}, {"c"}))}, 0);
    return std::vector<Array>{joined, string_hash_bucket(joined, 100),
                              string_hash_bucket(arg(in, 0), 9)};
  });
  const std::vector<Tensor> text{Tensor::strings({2}, {"a", "b"})};
  const auto out = run(make_plan(traced.graph, {}), other, store, context, text, {});
  const auto want = run(make_plan(traced.graph, {}), workspace, store, context, text, {});
  EXPECT_EQ(out[0].string_values()[2], "c");
  EXPECT_EQ(longs_of(out[1]), longs_of(want[1]));
  EXPECT_EQ(longs_of(out[2]), longs_of(want[2]));
}

TEST_F(OnDevice, WhatIsAllReducedIsInTheHostsMemoryUntilItIsAwaited) {
  FakeDevice device;
  Workspace other(device);
  auto traced = trace_function({floats({2})}, [&](const auto& in) {
    return std::vector<Array>{all_reduce(ReduceOp::kSum, exp(arg(in, 0))),
                              all_reduce(ReduceOp::kSum, arg(in, 0))};
  });
  context.replicas = 2;
  Step step(make_plan(traced.graph, {}, {.replicas = 2}), other, store, context,
            {{tensor({2}, {0, 1})}, {}});
  const Step::Next needed = step.next();
  for (const AllReduceBuffer& reduction : std::get<Step::AllReduce>(needed).reductions) {
    EXPECT_FALSE(device.holds(reduction.values, 2 * sizeof(float)));
    reinterpret_cast<float*>(reduction.values)[0] += 40;  // the other replica's share
  }
  EXPECT_TRUE(std::holds_alternative<Step::Await>(step.next()));
  EXPECT_TRUE(std::holds_alternative<Step::Finished>(step.next()));
  EXPECT_THAT(floats_of(step.outputs()[0]), ElementsAre(41, std::exp(1.0f)));
  EXPECT_THAT(floats_of(step.outputs()[1]), ElementsAre(40, 1));
}

TEST_F(OnDevice, AnOperationWithoutAKernelIsRefusedByName) {
  struct Bare final : Device {
    std::string_view name() const override { return "bare"; }
    Memory memory() const override { return Memory::kHost; }
    std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
      return cpu_device().allocate(bytes);
    }
    void copy(Direction, std::byte*, const std::byte*, std::size_t) override {}
    KernelRun prepare(const OpDef&, const KernelTypes&) override { return {}; }
  } bare;
  Workspace other(bare);
  auto traced = trace_function({floats({2})}, [](const auto& in) { return exp(arg(in, 0)); });
  EXPECT_THAT(message_of<UnimplementedError>([&] {
                run(make_plan(traced.graph, {}), other, store, context, {tensor({2}, {1, 2})}, {});
              }),
              AllOf(HasSubstr("exp(float32[2])"), HasSubstr("\"bare\"")));
}

using FakeDeviceDeathTest = OnDevice;

TEST_F(FakeDeviceDeathTest, ReadingItsMemoryWithoutACopyIsCaught) {
  FakeDevice device;
  const auto memory = device.allocate(64);
  EXPECT_DEATH(std::memset(memory.get(), 0, 1), "");
  EXPECT_DEATH(EXPECT_EQ(*memory, std::byte{0xff}), "");
  float host = 1;
  auto* bytes = reinterpret_cast<std::byte*>(&host);
  EXPECT_THROW(device.copy(Device::Direction::kWithin, memory.get(), bytes, 4), InternalError);
  EXPECT_THROW(device.copy(Device::Direction::kOut, memory.get(), bytes, 4), InternalError);
}

// The flags of operations agree with the kernels that the CPU has for them.
TEST(CpuDevice, HasAKernelForEveryOperationThatIsComputed) {
  const DType floats[] = {DType::kFloat32, DType::kFloat32, DType::kFloat32};
  const DType bools[] = {DType::kBool, DType::kBool, DType::kBool};
  for (const OpDef* op : all_ops()) {
    const auto inputs = static_cast<std::size_t>(std::min(op->inputs_max, 3));
    auto has_block = [&](const DType* dtypes) {
      try {
        return find_block_op(op->name, {dtypes, inputs}, dtypes[0]) != nullptr;
      } catch (const InvalidArgumentError&) {
        return false;
      }
    };
    const bool without =
        op->effect != Effect::kNone || op->has(OpFlags::kConstant) || op->has(OpFlags::kStepKey);
    const bool passes = op->has(OpFlags::kAlias) && !op->has(OpFlags::kConversion);
    const bool elementwise = op->has(OpFlags::kElementwise);
    EXPECT_EQ(find_cpu_kernel(op->name) == nullptr, without || passes || elementwise) << op->name;
    if (inputs == 0) continue;
    EXPECT_EQ(has_block(floats) || has_block(bools), elementwise) << op->name;
  }
}

}  // namespace
}  // namespace cairn
