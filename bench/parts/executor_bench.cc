// The time of one Wide & Deep training step in the executor: batch 256, eight tables of 1,000 x 8,
// a wide table of 28,000 x 1 over ten ids, MLP 72-128-64-1, Adagrad on everything. `--fake` leaves
// the store's own work out: it hands out rows that lie ready.
//
//   cairn-bench-executor [--fake] [--steps N]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/base/program.h"
#include "core/base/random.h"
#include "core/exec/executor.h"
#include "core/graph/function.h"
#include "core/graph/ops.h"
#include "core/rows/local_store.h"

namespace cairn {
namespace {

constexpr std::int64_t kBatch = 256, kTables = 8, kRows = 1000, kDim = 8, kWideRows = 28'000,
                       kWideIds = 10, kNumeric = 8;

class Model {
 public:
  explicit Model(LocalStore& store) : store_(store) {
    for (std::int64_t i = 0; i < kTables; ++i)
      tables_.push_back(make("table" + std::to_string(i), {kRows, kDim}));
    wide_ = make("wide", {kWideRows, 1});
    wide_numeric_ = make("wide_numeric", {kNumeric, 1});
    std::int64_t units[] = {kTables * kDim + kNumeric, 128, 64, 1};
    for (int i = 0; i < 3; ++i) {
      kernels_.push_back(make("kernel" + std::to_string(i), {units[i], units[i + 1]}));
      biases_.push_back(make("bias" + std::to_string(i), {units[i + 1]}));
    }
  }

  ConcreteFunction step() const {
    ElementSpec spec{{{"label", {DType::kFloat32, {Shape::kUnknown, 1}}},
                      {"numeric", {DType::kFloat32, {Shape::kUnknown, kNumeric}}},
                      {"deep", {DType::kInt32, {Shape::kUnknown, kTables}}},
                      {"wide", {DType::kInt32, {Shape::kUnknown, kWideIds}}}},
                     "label"};
    return trace(
        [this](const std::vector<TraceArgument>& in) {
          return Outputs{{"loss", record(std::get<Iterator>(in[0]).get_next())}};
        },
        {spec});
  }

 private:
  Variable make(const std::string& name, Shape shape) {
    VariableSpec spec;
    spec.name = name;
    spec.shape = std::move(shape);
    spec.initializer = Initializer::uniform(-0.05f, 0.05f);
    auto shared = std::make_shared<const VariableSpec>(std::move(spec));
    store_.add_slots(store_.create(shared), kRule);
    return Variable(shared);
  }

  Array record(const Batch& batch) const {
    std::vector<Array> parts;
    Array deep = batch.features["deep"];
    for (std::int64_t i = 0; i < kTables; ++i)
      parts.push_back(tables_[static_cast<std::size_t>(i)].gather(
          reshape(slice(deep, 1, i, 1), {Shape::kUnknown})));
    parts.push_back(batch.features["numeric"]);
    Array h = concat(parts, 1);
    for (std::size_t i = 0; i < 3; ++i) {
      h = matmul(h, kernels_[i]) + biases_[i];
      if (i < 2) h = relu(h);
    }
    Array wide = reduce_sum(wide_.gather(batch.features["wide"]), {1});
    Array logits = h + wide + matmul(batch.features["numeric"], wide_numeric_);
    Array loss =
        check_numerics(mean(sigmoid_cross_entropy_with_logits(batch.label, logits)), "loss");
    for (const auto& gradient : variable_gradients(loss)) {
      if (gradient.is_sparse())
        gradient.variable.update(kRule, gradient.sparse, 0.02f);
      else
        gradient.variable.update(kRule, gradient.dense, 0.02f);
    }
    return loss;
  }

  inline static const UpdateRule kRule{RuleKind::kAdagrad, {0.1f, 1e-7f}};
  LocalStore& store_;
  std::vector<Variable> tables_, kernels_, biases_;
  Variable wide_, wide_numeric_;
};

Element batch(Random& random) {
  Tensor label(DType::kFloat32, {kBatch, 1}), numeric(DType::kFloat32, {kBatch, kNumeric}),
      deep(DType::kInt32, {kBatch, kTables}), wide(DType::kInt32, {kBatch, kWideIds});
  for (float& x : label.mutable_values<float>()) x = random.below(4) == 0 ? 1.0f : 0.0f;
  for (float& x : numeric.mutable_values<float>()) x = static_cast<float>(random.uniform()) - 0.5f;
  // Squared: low ids come often, as categories do.
  auto skewed = [&](std::int64_t n) {
    return static_cast<std::int32_t>(random.uniform() * random.uniform() * static_cast<double>(n));
  };
  for (auto& id : deep.mutable_values<std::int32_t>()) id = skewed(kRows);
  for (auto& id : wide.mutable_values<std::int32_t>()) id = skewed(kWideRows);
  return {label, numeric, deep, wide};
}

// Rows that lie ready and updates that go nowhere.
class FakeStore final : public VariableStore {
 public:
  explicit FakeStore(const Graph& graph) {
    for (const auto& variable : graph.variables) {
      values_.push_back(Tensor::zeros(variable.type.dtype, variable.type.shape));
      auto values = values_.back().mutable_values<float>();
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = 0.01f * static_cast<float>(i % 11) - 0.05f;
    }
  }
  void pull(const StepContext&, std::span<Read> reads) override {
    for (Read& read : reads) {
      const Tensor& all = values_[read.variable];
      read.value = read.ids.defined() ? all.rows(0, read.ids.elements()) : all;
    }
  }
  void push(const StepContext&, std::span<Update>) override {}

 private:
  std::vector<Tensor> values_;
};

int bench(bool fake, int steps) {
  LocalStore local(1);
  Model model(local);
  ConcreteFunction step = model.step();
  std::vector<VariableId> bound;
  for (const auto& spec : step.variables)
    for (VariableId id = 0; id < local.size(); ++id)
      if (local.spec(id).name == spec->name) bound.push_back(id);
  FakeStore ready(step.graph);
  std::vector<VariableId> in_order;
  for (std::size_t i = 0; i < bound.size(); ++i) in_order.push_back(static_cast<VariableId>(i));
  auto plan = make_plan(step.graph, fake ? in_order : bound);
  VariableStore& store = fake ? static_cast<VariableStore&>(ready) : local;
  Random random(7);
  std::vector<Element> batches;
  for (int i = 0; i < 32; ++i) batches.push_back(batch(random));
  Workspace workspace;
  std::vector<double> times;
  float loss = 0;
  for (int i = 0; i < steps; ++i) {
    auto begin = std::chrono::steady_clock::now();
    loss = run(plan, workspace, store, {}, {},
               {{batches[static_cast<std::size_t>(i) % batches.size()]}})[0]
               .item<float>();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::sort(times.begin(), times.end());
  std::printf(
      "wide-deep step, %s store: median %.1f us, best %.1f us, p90 %.1f us (%d steps, %zu nodes, "
      "last loss %.4f)\n",
      fake ? "fake" : "local", times[times.size() / 2], times.front(), times[times.size() * 9 / 10],
      steps, step.graph.nodes.size(), loss);
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-executor", [&] {
    bool fake = false;
    int steps = 2000;
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--fake") == 0) fake = true;
      if (std::strcmp(argv[i], "--steps") == 0 && i + 1 < argc)
        steps = std::max(1, std::atoi(argv[++i]));
    }
    return cairn::bench(fake, steps);
  });
}
