// Training steps on a GPU with all variables in its memory: a multilayer perceptron, and DLRM.
//
//   cairn-bench-gpu-step [mlp|dlrm|all] [--arithmetic NAME]... [--windows N] [--json FILE]
//
// A window is 20 steps and one wait for the device. Inputs are variables as well, so that what is
// measured is the step, not the copying of inputs. The host's time is that of enqueueing a step.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/program.h"
#include "core/base/random.h"
#include "core/exec/executor.h"
#include "core/graph/function.h"
#include "core/graph/ops.h"
#include "core/graph/ops_model.h"
#include "core/kernels/cuda/library.h"
#include "core/rows/local_store.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;
const UpdateRule kSgd{RuleKind::kSgd, {}};
constexpr int kStepsPerWindow = 20;

struct Figure {
  double median = 0, least = 0, most = 0;  // ms
};

Figure figure_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back()};
}

class Model {
 public:
  // An input of the step, which does not train.
  Variable given(const std::string& name, Shape shape, Initializer initializer,
                 DType dtype = DType::kFloat32) {
    return make(name, std::move(shape), std::move(initializer), dtype, false);
  }
  Variable make(const std::string& name, Shape shape, Initializer initializer,
                DType dtype = DType::kFloat32, bool trainable = true) {
    auto spec = std::make_shared<VariableSpec>();
    spec->name = name;
    spec->dtype = dtype;
    spec->shape = std::move(shape);
    spec->initializer = std::move(initializer);
    spec->trainable = trainable;
    ids_.push_back(store_.create(spec));
    return variables_.emplace_back(spec);
  }
  static void train(const Array& loss, float rate) {
    for (const auto& gradient : variable_gradients(loss)) {
      if (gradient.is_sparse())
        gradient.variable.update(kSgd, gradient.sparse, rate);
      else
        gradient.variable.update(kSgd, gradient.dense, rate);
    }
  }

  // Windows of steps of `record`, which returns the loss. watch() names a value that is read to
  // wait for the device.
  template <typename Record>
  nlohmann::json measure(const std::string& name, Arithmetic arithmetic, int windows,
                         Record record) {
    const ConcreteFunction step = trace(
        [&](const std::vector<TraceArgument>&) {
          train(record(), 0.001f);
          return Outputs{};
        },
        {});
    const ConcreteFunction loss = trace(
        [&](const std::vector<TraceArgument>&) {
          return Outputs{{"loss", watched_()}};
        },
        {});
    const auto train_plan = plan_of(step, arithmetic), loss_plan = plan_of(loss, arithmetic);
    Workspace workspace(gpu(0));
    const auto one = [&] { run(train_plan, workspace, store_, {}, {}, {}); };
    const auto wait = [&] {
      return run(loss_plan, workspace, store_, {}, {}, {})[0].values<float>()[0];
    };
    const float first = wait();
    for (int i = 0; i < 3; ++i) one();
    wait();
    wait();
    std::vector<double> steps, hosts, losses;
    for (int w = 0; w < windows; ++w) {
      const auto begin = Clock::now();
      for (int i = 0; i < kStepsPerWindow; ++i) one();
      const auto enqueued = Clock::now();
      wait();
      const auto done = Clock::now();
      wait();
      const auto again = Clock::now();  // for the time that a wait itself takes
      const auto ms = [](auto d) { return std::chrono::duration<double, std::milli>(d).count(); };
      steps.push_back((ms(done - begin) - ms(again - done)) / kStepsPerWindow);
      hosts.push_back(ms(enqueued - begin) / kStepsPerWindow);
    }
    const float last = wait();
    const Figure took = figure_of(steps), host = figure_of(hosts);
    std::printf("%-20s %8.3f ms a step (%.3f to %.3f), host %.1f us, watched %.5f to %.5f\n",
                name.c_str(), took.median, took.least, took.most, host.median * 1000,
                static_cast<double>(first), static_cast<double>(last));
    return {{"name", name},
            {"ms", took.median},
            {"ms_min", took.least},
            {"ms_max", took.most},
            {"host_us", host.median * 1000},
            {"watched_first", first},
            {"watched_last", last}};
  }
  void watch(std::function<Array()> value) { watched_ = std::move(value); }

  // The time of one more step of `record`, up to its value, in ms: the median of `times` runs.
  template <typename Record>
  double ms_of(Arithmetic arithmetic, int times, const Record& record) {
    const ConcreteFunction function = trace(
        [&](const std::vector<TraceArgument>&) {
          return Outputs{{"value", record()}};
        },
        {});
    const auto plan = plan_of(function, arithmetic);
    Workspace workspace(gpu(0));
    std::vector<double> took;
    for (int i = 0; i < times + 3; ++i) {
      const auto begin = Clock::now();
      run(plan, workspace, store_, {}, {}, {});
      if (i >= 3)
        took.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    return figure_of(took).median;
  }

 private:
  std::shared_ptr<const Plan> plan_of(const ConcreteFunction& function,
                                      Arithmetic arithmetic) const {
    PlanOptions options;
    options.products = arithmetic;
    options.bytes_max = std::size_t{1} << 40;
    return make_plan(function.graph, ids_of(function), options);
  }
  std::vector<VariableId> ids_of(const ConcreteFunction& function) const {
    std::vector<VariableId> ids;
    for (const auto& used : function.variables)
      for (std::size_t i = 0; i < variables_.size(); ++i)
        if (variables_[i].shared_spec() == used) ids.push_back(ids_[i]);
    return ids;
  }

  LocalStore store_{7};
  std::vector<Variable> variables_;
  std::vector<VariableId> ids_;
  std::function<Array()> watched_;
};

constexpr std::int64_t kWidth = 4096, kBatch = 8192;  // of the multilayer perceptron

double product_flops() { return 2.0 * kBatch * kWidth * kWidth; }

// The rate of the library's products alone, in TFLOP/s: what a chain of 120 takes longer than one
// of 20.
double bare_product(Arithmetic arithmetic) {
  Model model;
  const float bound = std::sqrt(3.0f / static_cast<float>(kWidth));
  const Variable x = model.given("x", {kBatch, kWidth}, Initializer::uniform(-1, 1)),
                 kernel =
                     model.given("kernel", {kWidth, kWidth}, Initializer::uniform(-bound, bound));
  const auto chain_of = [&](int products) {
    return model.ms_of(arithmetic, 10, [&] {
      Array h = x.read();
      for (int i = 0; i < products; ++i) h = matmul(h, kernel);
      return mean(h);
    });
  };
  const double ms = (chain_of(120) - chain_of(20)) / 100;
  return product_flops() / ms / 1e9;
}

// Layers as wide as their input; a target of noise.
nlohmann::json mlp(Arithmetic arithmetic, int windows) {
  constexpr std::int64_t kLayers = 4;
  Model model;
  const Variable x = model.given("x", {kBatch, kWidth}, Initializer::uniform(-1, 1)),
                 target = model.given("target", {kBatch, kWidth}, Initializer::uniform(-1, 1));
  std::vector<Variable> kernels, biases;
  const float bound = std::sqrt(3.0f / static_cast<float>(kWidth));
  for (std::int64_t i = 0; i < kLayers; ++i) {
    kernels.push_back(model.make("kernel" + std::to_string(i), {kWidth, kWidth},
                                 Initializer::uniform(-bound, bound)));
    biases.push_back(model.make("bias" + std::to_string(i), {kWidth}, Initializer::zeros()));
  }
  const auto loss = [&] {
    Array h = x.read();
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      h = matmul(h, kernels[i]) + biases[i];
      if (i + 1 < kernels.size()) h = relu(h);
    }
    return mean(square(h - target.read()));
  };
  model.watch([&] { return mean(square(kernels[0].read())); });
  nlohmann::json made =
      model.measure(str("mlp ", arithmetic_name(arithmetic)), arithmetic, windows, loss);
  // Three products per layer, two for the first, which has no gradient of its input.
  const double tflops = product_flops() * (3 * kLayers - 1) / made["ms"].get<double>() / 1e9;
  const double bare = bare_product(arithmetic);
  made["tflops"] = tflops;
  made["bare_product_tflops"] = bare;
  std::printf("%-20s %8.1f TFLOP/s of products alone, %.0f %% of the %.1f of a bare product\n", "",
              tflops, 100 * tflops / bare, bare);
  return made;
}

// Ids of a power law: rank r has probability in proportion to r^-1.05.
Tensor power_law(std::int64_t count, std::int64_t rows, std::uint64_t seed) {
  Random random(seed);
  Tensor ids(DType::kInt64, {count});
  for (std::int64_t& id : ids.mutable_values<std::int64_t>()) {
    const double most = std::pow(static_cast<double>(rows), -0.05);
    const double rank = std::pow(1 - random.uniform() * (1 - most), -20.0);
    const auto place = std::min<std::int64_t>(static_cast<std::int64_t>(rank) - 1, rows - 1);
    id = static_cast<std::int64_t>(mix_bits(static_cast<std::uint64_t>(place) + seed) %
                                   static_cast<std::uint64_t>(rows));
  }
  return ids;
}

nlohmann::json dlrm(Arithmetic arithmetic, int windows) {
  constexpr std::int64_t kExamples = 16'384, kDim = 64, kTables = 26, kRows = 100'000, kDense = 13;
  Model model;
  const Variable numbers = model.given("numbers", {kExamples, kDense}, Initializer::uniform(0, 1)),
                 label = model.given("label", {kExamples, 1}, Initializer::uniform(0, 1));
  std::vector<Variable> ids, tables;
  for (std::int64_t t = 0; t < kTables; ++t) {
    ids.push_back(model.given(
        "ids" + std::to_string(t), {kExamples},
        Initializer::from(power_law(kExamples, kRows, 100 + static_cast<std::uint64_t>(t))),
        DType::kInt64));
    tables.push_back(model.make("table" + std::to_string(t), {kRows, kDim},
                                Initializer::uniform(-0.05f, 0.05f)));
  }
  struct Layer {
    Variable kernel, bias;
  };
  const auto layers = [&](const std::string& name, std::vector<std::int64_t> units) {
    std::vector<Layer> made;
    for (std::size_t i = 0; i + 1 < units.size(); ++i) {
      const float bound = std::sqrt(6.0f / static_cast<float>(units[i] + units[i + 1]));
      made.push_back(
          {model.make(name + "k" + std::to_string(i), {units[i], units[i + 1]},
                      Initializer::uniform(-bound, bound)),
           model.make(name + "b" + std::to_string(i), {units[i + 1]}, Initializer::zeros())});
    }
    return made;
  };
  const auto bottom = layers("bottom", {kDense, 512, 256, kDim});
  const std::int64_t pairs = (kTables + 1) * kTables / 2;
  const auto top = layers("top", {pairs + kDim, 1024, 1024, 512, 256, 1});
  const auto through = [](Array h, const std::vector<Layer>& all, bool relu_last) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      h = matmul(h, all[i].kernel) + all[i].bias;
      if (relu_last || i + 1 < all.size()) h = relu(h);
    }
    return h;
  };
  const auto loss = [&] {
    const Array dense = through(numbers.read(), bottom, true);
    std::vector<Array> vectors = {dense};
    for (std::size_t t = 0; t < tables.size(); ++t)
      vectors.push_back(tables[t].gather(ids[t].read()));
    const Array crossed = dot_interaction(stack(vectors, 1));
    const Array logits = through(concat({dense, crossed}, 1), top, false);
    return mean(sigmoid_cross_entropy_with_logits(label.read(), logits));
  };
  model.watch([&] { return mean(square(top[0].kernel.read())); });
  nlohmann::json made =
      model.measure(str("dlrm ", arithmetic_name(arithmetic)), arithmetic, windows, loss);
  made["examples_per_second"] = kExamples / made["ms"].get<double>() * 1000;
  std::printf("%-20s %8.0f examples/s\n", "", made["examples_per_second"].get<double>());
  return made;
}

int run_main(int argc, char** argv) {
  CLI::App app("Training steps on a GPU with all variables in its memory");
  std::string what = "all", file;
  int windows = 10;
  std::vector<std::string> arithmetics = {"mixed_bfloat16", "bfloat16", "tf32"};
  app.add_option("what", what, "mlp, dlrm or all");
  app.add_option("--windows", windows, "windows of 20 steps");
  app.add_option("--arithmetic", arithmetics,
                 "of products: float32, tf32, bfloat16, mixed_bfloat16 (all but the first)");
  app.add_option("--json", file, "where the figures go");
  CLI11_PARSE(app, argc, argv);
  nlohmann::json figures = nlohmann::json::array();
  for (const std::string& name : arithmetics) {
    const Arithmetic arithmetic = parse_arithmetic(name);
    if (what != "dlrm") figures.push_back(mlp(arithmetic, windows));
    if (what != "mlp") figures.push_back(dlrm(arithmetic, windows));
  }
  if (!file.empty()) std::ofstream(file) << figures.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-gpu-step", [&] { return cairn::run_main(argc, argv); });
}
