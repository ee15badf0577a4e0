// Model.fit's figures as recorded: guide_fit.json, guide_losses.json, and the cases of fit() in
// training.json, ps_training.json and ps_one_worker.json.
#include "core/graph/ops.h"
#include "tests/model/small_models.h"
#include "tests/strategy/recorded_optimizer.h"
#include "tests/strategy/recorded_strategies.h"

namespace cairn {
namespace {

using testing::expect_near;
using testing::fail_unknown;
using testing::logical_cpus;
using testing::tensor_of;

// of two to five epochs
constexpr double kTolerance = 2e-5;

Tensor start(const Json& json, Shape shape) {
  return json.is_object()
             ? tensor_of(json)
             : Tensor::of<float>(std::move(shape), std::vector<float>{json.get<float>()});
}

// The means since each epoch began, as a progress bar would ask for them.
struct RunningLoss final : Callback {
  void on_train_batch_end(TrainingRun&, std::int64_t, const Logs& logs) override {
    values.push_back(static_cast<float>(logs.at("loss")));
  }
  bool wants_batch_logs() const override { return true; }
  std::vector<float> values;
};

std::vector<float> floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// "legacy.SGD(0.01)": the reference's legacy optimizers are ours.
std::shared_ptr<nn::Optimizer> optimizer_of(std::string text) {
  if (text.starts_with("legacy.")) text = text.substr(7);
  return testing::recorded_optimizer(text);
}

// The guide's model: one dense unit with an L2 term, by the reference's rule of loss scaling. Made
// in the scope of its strategy.
struct GuideModel {
  explicit GuideModel(const Json& in)
      : dense({.units = 1,
               .kernel_initializer = Initializer::from(start(in.at("kernel"), {1, 1})),
               .bias_initializer = Initializer::from(start(in.at("bias"), {1}))}),
        model([this, l2 = in.value("l2", Json())](const Array& x) {
          const Array y = dense(x);
          if (!l2.is_null())
            nn::add_loss("l2", nn::l2_regularization(dense.kernel(), l2.get<float>()));
          return y;
        }) {
    std::vector<MetricChoice> metrics;
    if (in.contains("metric")) metrics.emplace_back(in.at("metric").get<std::string>());
    model.compile({.optimizer = optimizer_of(in.at("optimizer")),
                   .loss = in.value("loss", "mse"),
                   .metrics = std::move(metrics),
                   .loss_scaling = LossScaling::kReplicaMean});
  }
  History fit(const Tensor& x, const Tensor& y, std::int64_t epochs, std::int64_t batch) {
    return model.fit(x, y,
                     {.epochs = epochs,
                      .batch_size = batch,
                      .shuffle = false,
                      .callbacks = {running},
                      .verbose = Verbose::kSilent});
  }
  void expect_weights(const Json& weights, double relative = kTolerance, double absolute = 1e-6) {
    const auto own = model.get_weights();
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto values = own[i].values<float>();
      expect_near(weights.at(i), {values.begin(), values.end()}, relative, absolute);
    }
  }

  nn::Dense dense;
  Model model;
  std::shared_ptr<RunningLoss> running = std::make_shared<RunningLoss>();
};

// On so many replicas.
struct Guide {
  explicit Guide(const Json& in)
      : strategy(logical_cpus(in.at("replicas"))), scope(strategy.scope()), of(in) {}
  MirroredStrategy strategy;
  Scope scope;
  GuideModel of;
};

constexpr const char* kOnes = "([1.],[1.]) x100";
const Tensor kHundredOnes = Tensor::of<float>({100, 1}, std::vector<float>(100, 1.0f));

void fits_as_the_guide(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  if (!in.at("data").get<std::string>().starts_with(kOnes)) return fail_unknown(test, "the data");
  Guide made(in);
  GuideModel& guide = made.of;
  const History first = guide.fit(kHundredOnes, kHundredOnes, 2, 10);
  expect_near(out.at("running_mean_loss_per_batch"), guide.running->values, kTolerance, 1e-6);
  const Json& epochs = out.contains("epoch_loss") ? out.at("epoch_loss") : out.at("fit_history");
  expect_near(epochs, floats(first["loss"]), kTolerance, 1e-6);
  if (out.contains("weights_after")) guide.expect_weights(out.at("weights_after"));
  const Json& judged =
      out.contains("evaluate_loss") ? out.at("evaluate_loss") : out.at("evaluate_result");
  const Logs logs = guide.model.evaluate(kHundredOnes, kHundredOnes, {.batch_size = 10});
  expect_near(Json::array({judged}), {static_cast<float>(logs.at("loss"))}, kTolerance, 1e-6);
  guide.running->values.clear();
  const History second = guide.fit(kHundredOnes, kHundredOnes, 2, 10);
  expect_near(out.at("numpy_running_mean_loss_per_batch"), guide.running->values, kTolerance, 1e-6);
  const Json& later =
      out.contains("numpy_epoch_loss") ? out.at("numpy_epoch_loss") : out.at("numpy_history");
  expect_near(later, floats(second["loss"]), kTolerance, 1e-6);
  guide.expect_weights(out.at("final_weights"));
}

void fits_random_data(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  const Tensor x = tensor_of(in.at("features")), y = tensor_of(in.at("labels"));
  Guide made(in);
  GuideModel& guide = made.of;
  const std::int64_t batch = in.at("batch");
  const History history = guide.fit(x, y, in.at("epochs"), batch);
  expect_near(out.at("running_mean_loss_per_batch"), guide.running->values, kTolerance, 1e-6);
  expect_near(out.at("epoch_loss"), floats(history["loss"]), kTolerance, 1e-6);
  expect_near(out.at("epoch_mae"), floats(history["mae"]), kTolerance, 1e-6);
  const Logs judged = guide.model.evaluate(x, y, {.batch_size = batch});
  expect_near(out.at("evaluate"),
              {static_cast<float>(judged.at("loss")), static_cast<float>(judged.at("mae"))},
              kTolerance, 1e-6);
  const Tensor predicted = guide.model.predict(x, batch);
  const auto values = predicted.values<float>();
  expect_near(out.at("predict"), {values.begin(), values.end()}, kTolerance, 2e-6);
  guide.expect_weights(out.at("final_weights"));
}

void is_tested_by_a_loop(const Json&) {}  // tests/strategy/servers/in_sync_vectors_test.cc

TEST(Vectors, ModelFit) {
  testing::run_cases("training", {{"guide_fit", fits_as_the_guide},
                                  {"random_fit", fits_random_data},
                                  {"guide_custom_loop", is_tested_by_a_loop},
                                  {"random_custom_loop", is_tested_by_a_loop},
                                  {"partial_batch_loop", is_tested_by_a_loop}});
}

TEST(Vectors, GuideFit) { testing::run_cases("guide_fit", {{"guide_printed", fits_as_the_guide}}); }

// ---- on parameter servers: one closure at a time, if there is one worker ----

struct GuideOnServers {
  GuideOnServers(const Json& in, int ps, int workers)
      : cluster({.ps = ps, .workers = workers, .strategy = {.engine = {.pipeline_depth = 1}}}),
        scope(cluster.strategy().scope()),
        of(in) {}
  History fit(const Json& in) {
    return of.model.fit(data(in), {.epochs = in.at("epochs"),
                                   .steps_per_epoch = in.at("steps_per_epoch"),
                                   .verbose = Verbose::kSilent});
  }
  // "([1.],[1.]) repeated, batch 9"
  static Dataset data(const Json& in) {
    const std::string text = in.at("data"), head = "([1.],[1.]) repeated, batch ";
    if (!text.starts_with(head)) throw InvalidArgumentError("no test knows the data " + text);
    const Tensor one = Tensor::of<float>({1, 1}, std::vector<float>{1});
    return Dataset::from_tensor_slices({{"x", one}, {"y", one}}, "y")
        .repeat()
        .batch(std::stoll(text.substr(head.size())));
  }
  std::int64_t iterations() {
    return of.model.optimizer().iterations().read().eval().item<std::int64_t>();
  }
  SimulatedCluster cluster;
  Scope scope;
  GuideModel of;
};

void fits_on_one_worker(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out").at("ok");
  GuideOnServers guide(in, in.at("num_ps"), in.at("num_workers"));
  expect_near(out.at("epoch_loss"), floats(guide.fit(in)["loss"]), kTolerance, 1e-6);
  const Logs judged = guide.of.model.evaluate(GuideOnServers::data(in), {.steps = 1});
  expect_near(Json::array({out.at("evaluate_loss")}), {static_cast<float>(judged.at("loss"))},
              kTolerance, 1e-6);
  guide.of.expect_weights(out.at("weights"));
  EXPECT_EQ(guide.iterations(), out.at("iterations").get<std::int64_t>());
}

// Two workers run at once, there as here: each closure sees what it sees, so weights are close, not
// equal.
void fits_on_two_workers(const Json& test) {
  constexpr double kClose = 0.02;
  const Json &in = test.at("in"), &out = test.at("out").at("ok");
  GuideOnServers guide(in, 2, 2);
  const History history = guide.fit(in);
  EXPECT_EQ(history.epoch.size(), out.at("epochs").get<std::size_t>());
  EXPECT_LT(history["loss"].back(), history["loss"].front());
  guide.of.expect_weights(out.at("weights_close_to"), 0, kClose);
  EXPECT_EQ(guide.iterations(), out.at("iterations").get<std::int64_t>());
}

// The others are in tests/strategy/servers/training_vectors_test.cc.
TEST(Vectors, ModelFitOnParameterServers) {
  testing::run_cases("ps_training", {{"dense", is_tested_by_a_loop},
                                     {"embedding", is_tested_by_a_loop},
                                     {"model_fit", fits_on_two_workers}});
}

TEST(Vectors, ModelFitOnOneWorker) {
  testing::run_cases("ps_one_worker",
                     {{"custom_loop", is_tested_by_a_loop}, {"model_fit", fits_on_one_worker}});
}

// The losses that the guide prints, of which those of `losses` are a replay.
void prints_the_losses(const Json& test) {
  const Json& in = test.at("in");
  OneDeviceStrategy strategy;
  const Scope scope = strategy.scope();
  nn::Dense dense({.units = 1,
                   .kernel_initializer = Initializer::from(start(in.at("kernel"), {1, 1})),
                   .bias_initializer = Initializer::from(start(in.at("bias"), {1}))});
  const float l2 = in.at("l2");
  Model model([&](const Array& x) {
    const Array y = dense(x);
    nn::add_loss("l2", nn::l2_regularization(dense.kernel(), l2));
    return y;
  });
  model.compile({.optimizer = std::shared_ptr(testing::recorded_optimizer(in.at("optimizer"))),
                 .loss = nn::Loss("binary_crossentropy", {.from_logits = true})});
  const std::int64_t batch = in.at("global_batch"), steps = in.at("steps");
  const Tensor ones = Tensor::of<float>({batch, 1}, std::vector<float>(std::size_t(batch), 1.0f));
  const History history =
      model.fit(ones, ones, {.epochs = steps, .batch_size = batch, .verbose = Verbose::kSilent});
  expect_near(test.at("out").at("printed"), floats(history["loss"]), kTolerance, 1e-6);
}

TEST(Vectors, GuideLosses) {
  testing::run_cases("guide_losses", {{"guide_printed", prints_the_losses}});
}

}  // namespace
}  // namespace cairn
