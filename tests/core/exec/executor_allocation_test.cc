// A warm run allocates nothing: counted by replacing operator new, which is why this is a program
// of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>

#include "core/exec/executor.h"
#include "tests/core/graph_testing.h"

namespace {
std::atomic<std::int64_t> allocations{0};
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace cairn {
namespace {

using namespace testing;  // NOLINT

// Hands out tensors that lie ready.
struct ReadyStore final : VariableStore {
  std::vector<Tensor> values;
  void pull(const StepContext&, std::span<Read> reads) override {
    for (Read& read : reads) read.value = values[read.variable];
  }
  void push(const StepContext&, std::span<Update>) override {}
};

// Allocations of the `n`-th run with the same shapes, construction and outputs included.
std::int64_t allocations_when_warm(const std::shared_ptr<const Plan>& plan, VariableStore& store,
                                   const std::vector<Tensor>& arguments) {
  Workspace workspace;
  for (int i = 0; i < 3; ++i) run(plan, workspace, store, {}, arguments, {});
  std::int64_t before = allocations.load();
  run(plan, workspace, store, {}, arguments, {});
  return allocations.load() - before;
}

Array deep(Array x, int layers) {
  for (int i = 0; i < layers; ++i)
    x = relu(softmax(x) * 2.0f + tanh(x)) - reduce_mean(x, {1}, true);
  return x;
}

TEST(WarmRun, AllocatesTheSameHoweverMuchItComputes) {
  ReadyStore store;
  Tensor x = Tensor::zeros(DType::kFloat32, {64, 16});
  auto counted = [&](int layers) {
    auto traced = trace_function({floats({kAny, 16})}, [&](const auto& in) {
      return sum(deep(std::get<Array>(in[0]), layers));
    });
    return allocations_when_warm(make_plan(traced.graph, {}), store, {x});
  };
  EXPECT_EQ(counted(1), counted(40));
  EXPECT_LE(counted(40), 16);  // the run itself, handles of its arguments, and its one output
}

TEST(WarmRun, AllocatesAHandfulForEachTensorThatCrossesTheStore) {
  Variable w = make_variable("w", {16, 16}), table = make_variable("table", {8, 16});
  const UpdateRule sgd{RuleKind::kSgd, {}};
  auto traced = trace_function({floats({kAny, 16}), ints({kAny})}, [&](const auto& in) {
    Array h =
        deep(matmul(std::get<Array>(in[0]), w.read()), 10) + table.gather(std::get<Array>(in[1]));
    Array loss = sum(h);
    for (const auto& gradient : variable_gradients(loss)) {
      if (gradient.is_sparse())
        gradient.variable.update(sgd, gradient.sparse, 0.1f);
      else
        gradient.variable.update(sgd, gradient.dense, 0.1f);
    }
    return loss;
  });
  ReadyStore store;
  for (const auto& variable : traced.graph.variables)
    store.values.push_back(variable.name == "w" ? Tensor::zeros(DType::kFloat32, {16, 16})
                                                : Tensor::zeros(DType::kFloat32, {1, 16}));
  std::vector<VariableId> bound{0, 1};
  Tensor x = Tensor::zeros(DType::kFloat32, {64, 16}), ids = Tensor::zeros(DType::kInt64, {64});
  // Two reads, two updates: a Tensor's shape is a vector of its own, and handles are copied a few
  // times on the way.
  EXPECT_LE(allocations_when_warm(make_plan(traced.graph, bound), store, {x, ids}), 56);
}

TEST(Products, StartNoThreads) {
  Variable none;
  auto traced = trace_function({floats({kAny, 256})}, [&](const auto& in) {
    return matmul(std::get<Array>(in[0]), std::get<Array>(in[0]), true, false);
  });
  ReadyStore store;
  Workspace workspace;
  run(make_plan(traced.graph, {}), workspace, store, {},
      {Tensor::zeros(DType::kFloat32, {512, 256})}, {});
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line) && line.rfind("Threads:", 0) != 0) {
  }
  EXPECT_EQ(line, "Threads:\t1");
}

}  // namespace
}  // namespace cairn
