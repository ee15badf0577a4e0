// ps_training.json and ps_one_worker.json: the losses and weights of small models, step by step.
#include <array>
#include <cmath>
#include <numeric>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "testing/simulated_cluster.h"
#include "tests/strategy/vector_cases.h"

namespace cairn {
namespace {

// of ten and more steps, as the vectors' README has it
constexpr double kTolerance = 2e-5;

// "legacy.SGD(0.05,momentum=0.9)": a name, the learning rate, and options by name.
struct OptimizerCall {
  std::string name;
  float learning_rate = 0;
  std::map<std::string, float> options;

  explicit OptimizerCall(const std::string& text) {
    const auto open = text.find('('), close = text.rfind(')');
    if (!text.starts_with("legacy.") || open == std::string::npos || close == std::string::npos)
      throw InvalidArgumentError("no test knows the optimizer " + text);
    name = text.substr(7, open - 7);
    std::stringstream arguments(text.substr(open + 1, close - open - 1));
    for (std::string argument; std::getline(arguments, argument, ',');)
      if (auto equals = argument.find('='); equals != std::string::npos)
        options[argument.substr(argument.find_first_not_of(' '), equals)] =
            std::stof(argument.substr(equals + 1));
      else
        learning_rate = std::stof(argument);
  }
  float take(const std::string& option, float otherwise) {
    auto node = options.extract(option);
    return node ? node.mapped() : otherwise;
  }
};

std::unique_ptr<nn::Optimizer> optimizer_of(const std::string& text) {
  OptimizerCall call(text);
  std::unique_ptr<nn::Optimizer> made;
  const float rate = call.learning_rate;
  if (call.name == "SGD")
    made = std::make_unique<nn::Sgd>(nn::SgdOptions{.learning_rate = rate,
                                                    .momentum = call.take("momentum", 0),
                                                    .nesterov = call.take("nesterov", 0) != 0});
  if (call.name == "Adagrad")
    made = std::make_unique<nn::Adagrad>(nn::AdagradOptions{
        .learning_rate = rate,
        .initial_accumulator_value = call.take("initial_accumulator_value", 0.1f)});
  if (call.name == "Adam")
    made = std::make_unique<nn::Adam>(nn::AdamOptions{.learning_rate = rate,
                                                      .beta_1 = call.take("beta_1", 0.9f),
                                                      .beta_2 = call.take("beta_2", 0.999f)});
  if (call.name == "Ftrl")
    made = std::make_unique<nn::Ftrl>(nn::FtrlOptions{.learning_rate = rate});
  if (!made || !call.options.empty())
    throw InvalidArgumentError("no test knows the optimizer " + text);
  return made;
}

std::vector<float> values_of(const Variable& variable) {
  Tensor all = variable.read().eval();
  auto values = all.values<float>();
  return {values.begin(), values.end()};
}

Tensor rows_of(const Tensor& all, std::int64_t begin, std::int64_t count) {
  auto values = all.values<float>();
  const auto width = static_cast<std::size_t>(all.shape().row_elements());
  return Tensor::of<float>(all.shape().with_dim(0, count),
                           values.subspan(static_cast<std::size_t>(begin) * width,
                                          static_cast<std::size_t>(count) * width));
}

// A cluster, its coordinator, and variables that begin with the numbers given. Closures run one
// after another.
struct Training {
  Training(int ps, int workers, std::shared_ptr<const Partitioner> partitioner = nullptr)
      : cluster({.ps = ps,
                 .workers = workers,
                 .strategy = {.partitioner = std::move(partitioner),
                              .engine = {.pipeline_depth = 1}}}) {}
  Variable variable(const std::string& name, const Tensor& start) {
    return cluster.strategy().create_variable(
        {.name = name, .shape = start.shape(), .initializer = Initializer::from(start)});
  }
  float run(Function& step, const std::vector<ScheduleArgument>& arguments) {
    RemoteValue loss = coordinator.schedule(step, arguments);
    coordinator.join(kPatience);
    return loss.get(kPatience).item<float>();
  }

  SimulatedCluster cluster;
  ClusterCoordinator coordinator{cluster.strategy()};
  Scope scope = cluster.strategy().scope();
};

// ---- ps_training.json ----

constexpr const char* kDenseLoss = "mean((x@kernel+bias - y)^2)";
constexpr const char* kEmbeddingLoss = "mean((x@kernel+bias+table[ids]@projection - y)^2)";

struct Regression {
  Regression(const Json& in, Training& training) : optimizer(optimizer_of(in.at("optimizer"))) {
    for (const char* name : {"kernel", "bias", "table", "projection"})
      if (in.contains(name))
        variables[name] = training.variable(name, testing::tensor_of(in.at(name)));
  }
  Array train(const Array& x, const Array& y, const Array& ids) const {
    Array predicted = matmul(x, variables.at("kernel").read()) + variables.at("bias").read();
    if (ids.defined())
      predicted =
          predicted + matmul(variables.at("table").gather(ids), variables.at("projection").read());
    Array difference = predicted - y;
    Array loss = mean(difference * difference);
    optimizer->minimize(loss);
    return loss;
  }
  std::map<std::string, Variable> variables;
  std::unique_ptr<nn::Optimizer> optimizer;
};

std::vector<float> losses_in_turn(const Json& in, Training& training, Function& step) {
  const Tensor features = testing::tensor_of(in.at("features")),
               labels = testing::tensor_of(in.at("labels"));
  const std::int64_t batch = in.at("batch"), batches = features.shape()[0] / batch;
  const bool embedding = in.contains("ids");
  std::vector<float> losses;
  for (std::int64_t i = 0; i < in.at("steps").get<std::int64_t>(); ++i) {
    const std::int64_t begin = i % batches * batch;
    std::vector<ScheduleArgument> arguments = {rows_of(features, begin, batch),
                                               rows_of(labels, begin, batch)};
    if (embedding) {
      auto all = in.at("ids").get<std::vector<std::int64_t>>();
      arguments.emplace_back(Tensor::of<std::int64_t>(
          {batch}, std::span<const std::int64_t>(all).subspan(static_cast<std::size_t>(begin),
                                                              static_cast<std::size_t>(batch))));
    }
    losses.push_back(training.run(step, arguments));
  }
  return losses;
}

void regression_trains_as_recorded(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  const bool embedding = in.contains("table");
  if (in.at("loss") != (embedding ? kEmbeddingLoss : kDenseLoss))
    return testing::fail_unknown(test, "the loss");
  Training training(2, 2, embedding ? FixedShardsPartitioner(in.at("num_shards")) : nullptr);
  Regression model(in, training);
  Function step = embedding
                      ? training.cluster.strategy().function(
                            [&](Array x, Array y, Array ids) { return model.train(x, y, ids); })
                      : training.cluster.strategy().function(
                            [&](Array x, Array y) { return model.train(x, y, Array()); });
  const auto losses = losses_in_turn(in, training, step);
  testing::expect_near(out.at("losses"), losses, kTolerance, 1e-6);
  for (const auto& [name, variable] : model.variables) {
    SCOPED_TRACE(name);
    testing::expect_near(out.at(name), values_of(variable), kTolerance, 1e-6);
  }
  EXPECT_EQ(model.optimizer->iterations().read().eval().item<std::int64_t>(),
            out.at("iterations").get<std::int64_t>());
}

// ---- ps_one_worker.json: the guide's model, ([1.], [1.]) for ever ----

struct GuideModel {
  GuideModel(const Json& in, Training& training)
      : l2(in.at("l2").get<float>()), optimizer(optimizer_of(in.at("optimizer"))) {
    kernel = training.variable("kernel",
                               Tensor::of<float>({1, 1}, std::array{in.at("kernel").get<float>()}));
    bias =
        training.variable("bias", Tensor::of<float>({1}, std::array{in.at("bias").get<float>()}));
  }
  Array total(Iterator input) const {
    auto [features, label] = input.get_next();
    Array weights = kernel.read();
    Array predicted = matmul(features["x"], weights) + bias.read();
    return mean(nn::sigmoid_cross_entropy(predicted, label)) +
           reduce_sum(weights * weights) * Array(l2);
  }
  Array train(Iterator input) const {
    Array value = total(input);
    optimizer->minimize(value);
    return value;
  }

  float l2;
  Variable kernel, bias;
  std::unique_ptr<nn::Optimizer> optimizer;
};

// The batch is said in the text in any case: "([1.],[1.]) repeated, batch 9".
Dataset guide_data(const Json& in) {
  const std::string text = in.at("data"), head = "([1.],[1.]) repeated, batch ";
  if (!text.starts_with(head)) throw InvalidArgumentError("no test knows the data " + text);
  Tensor one = Tensor::of<float>({1, 1}, std::array{1.0f});
  return Dataset::from_tensor_slices({{"x", one}, {"y", one}}, "y")
      .repeat()
      .batch(std::stoll(text.substr(head.size())));
}

void custom_loop_trains_as_recorded(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  if (in.at("loss") !=
      "BinaryCrossentropy(from_logits) per example, compute_average_loss, plus scaled L2")
    return testing::fail_unknown(test, "the loss");
  Training training(in.at("num_ps"), in.at("num_workers"));
  GuideModel model(in, training);
  auto data = training.coordinator.create_per_worker_dataset(guide_data(in));
  Function step =
      training.cluster.strategy().function([&](Iterator input) { return model.train(input); });
  std::vector<float> losses;
  for (int i = 0; i < in.at("steps").get<int>(); ++i) losses.push_back(training.run(step, {data}));
  testing::expect_near(out.at("losses"), losses, kTolerance, 1e-6);
  testing::expect_near(out.at("weights").at(0), values_of(model.kernel), kTolerance, 1e-6);
  testing::expect_near(out.at("weights").at(1), values_of(model.bias), kTolerance, 1e-6);
}

void is_fitted(const Json&) {}  // tests/model/fit_loop_vectors_test.cc

TEST(Vectors, TrainingOnParameterServers) {
  testing::run_cases("ps_training", {{"dense", regression_trains_as_recorded},
                                     {"embedding", regression_trains_as_recorded},
                                     {"model_fit", is_fitted}});
}

TEST(Vectors, TrainingOnOneWorker) {
  testing::run_cases("ps_one_worker",
                     {{"custom_loop", custom_loop_trains_as_recorded}, {"model_fit", is_fitted}});
}

}  // namespace
}  // namespace cairn
