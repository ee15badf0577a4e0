// losses.json and training.json: a replica's part of a loss, and the losses and weights of a small
// model on one to four replicas, step by step.
#include "core/graph/ops.h"
#include "nn/nn.h"
#include "strategy/base/average_loss.h"
#include "tests/strategy/recorded_optimizer.h"
#include "tests/strategy/recorded_strategies.h"

namespace cairn {
namespace {

using testing::expect_near;
using testing::expect_value;
using testing::fail_unknown;
using testing::logical_cpus;
using testing::recorded_optimizer;
using testing::refused;
using testing::tensor_of;

// ---- losses.json ----

// On every replica as recorded, and in cross-replica context.
void expect_loss(const Json& test, const std::function<Array()>& loss) {
  const Json& out = test.at("out");
  MirroredStrategy strategy(logical_cpus(test.at("in").at("replicas")));
  Function step = strategy.function([&] { return loss(); });
  const Json& in_replica = out.at("in_replica").at("ok");
  const auto own = testing::local_tensors(strategy, strategy.run(step)[0]);
  ASSERT_EQ(own.size(), in_replica.size());
  for (std::size_t i = 0; i < own.size(); ++i) expect_value(in_replica.at(i), own[i]);
  const Json& cross = out.at("cross_replica");
  if (!refused(cross)) return expect_value(cross.at("ok"), strategy.call(step)[0].tensor());
  EXPECT_EQ(cross.at("error"), "RuntimeError");
  EXPECT_THROW(strategy.call(step), FailedPreconditionError);
}

AverageLossOptions options_of(const Json& in) {
  AverageLossOptions options;
  if (const Json weight = in.value("sample_weight", Json()); !weight.is_null())
    options.sample_weight = Array(tensor_of(weight));
  if (const Json size = in.value("global_batch_size", Json()); !size.is_null())
    options.global_batch_size = size.get<std::int64_t>();
  return options;
}

void averages(const Json& test) {
  const Json& in = test.at("in");
  const Tensor losses = tensor_of(in.at("per_example_loss"));
  expect_loss(test, [&] { return compute_average_loss(losses, options_of(in)); });
}

void scales(const Json& test) {
  const Tensor loss = tensor_of(test.at("in").at("regularization_loss"));
  expect_loss(test, [&] { return scale_regularization_loss(loss); });
}

// A global batch size that is no integer, or no number, does not compile.
static_assert(!std::is_convertible_v<Tensor, std::int64_t>);
void takes_or_refuses_arguments(const Json& test) {
  const Json &in = test.at("in").at("arguments"), &out = test.at("out");
  const Json batch = in.value("global_batch_size", Json());
  if (!batch.is_null() && !batch.is_number_integer()) {
    EXPECT_TRUE(refused(out)) << "docs/differences.md says that it does not compile";
    return;
  }
  const Json& losses = in.at("per_example_loss");
  const Array loss = losses.is_number() ? Array(losses.get<float>()) : Array(tensor_of(losses));
  if (!refused(out))
    return expect_value(out.at("ok"), compute_average_loss(loss, options_of(in)).eval());
  EXPECT_THROW(compute_average_loss(loss, options_of(in)), InvalidArgumentError);
}

const testing::Kinds kLossesKinds = {{"compute_average_loss", averages},
                                     {"scale_regularization_loss", scales},
                                     {"compute_average_loss_errors", takes_or_refuses_arguments}};

TEST(Vectors, Losses) { testing::run_cases("losses", kLossesKinds); }
TEST(Vectors, LossesOfFormsThatWereNotRecorded) { testing::run_more_cases("losses", kLossesKinds); }

// ---- training.json ----

// The tolerance for trainings of 12 and of up to 200 steps.
constexpr double kTrainingTolerance = 2e-5;

// A dense layer of one unit under a strategy of so many replicas.
struct Trained {
  explicit Trained(const Json& in)
      : strategy(logical_cpus(in.at("replicas"))),
        optimizer(recorded_optimizer(in.at("optimizer"))),
        l2(in.value("l2", Json())) {
    auto as_tensor = [](const Json& json, Shape shape) {
      return json.is_object()
                 ? tensor_of(json)
                 : Tensor::of<float>(std::move(shape), std::vector<float>{json.get<float>()});
    };
    dense = std::make_unique<nn::Dense>(nn::DenseOptions{
        .units = 1,
        .kernel_initializer = Initializer::from(as_tensor(in.at("kernel"), {1, 1})),
        .bias_initializer = Initializer::from(as_tensor(in.at("bias"), {1}))});
  }

  using Loss = std::function<Array(const Array& prediction, const Array& label)>;
  // A loss for each element of `out.losses`, and the weights after them.
  void expect(const Json& out, const Dataset& batches, const Loss& loss_of,
              const AverageLossOptions& options = {}) {
    auto scope = strategy.scope();
    auto data = strategy.iterate(strategy.experimental_distribute_dataset(batches));
    Function step = strategy.function([&](Iterator input) {
      const Batch batch = input.get_next();
      const Array prediction = (*dense)(batch.features["x"]);
      Array loss = compute_average_loss(loss_of(prediction, batch.label), options);
      if (!l2.is_null())
        loss = loss +
               scale_regularization_loss(nn::l2_regularization(dense->kernel(), l2.get<float>()));
      optimizer->minimize(loss);
      return loss;
    });
    std::vector<float> losses;
    for (std::size_t i = 0; i < out.at("losses").size(); ++i)
      losses.push_back(
          strategy.reduce(ReduceOp::kSum, strategy.run(step, {data})[0]).item<float>());
    expect_near(out.at("losses"), losses, kTrainingTolerance, 1e-6);
    const Json& weights = out.at("final_weights");
    expect_near(weights.at(0), values(dense->kernel()), kTrainingTolerance, 1e-6);
    expect_near(weights.at(1), values(dense->bias()), kTrainingTolerance, 1e-6);
  }
  static std::vector<float> values(const Variable& variable) {
    const Tensor value = variable.read().eval();
    const auto all = value.values<float>();
    return {all.begin(), all.end()};
  }

  MirroredStrategy strategy;
  std::unique_ptr<nn::Dense> dense;
  std::unique_ptr<nn::Optimizer> optimizer;
  Json l2;
};

Dataset examples_of(const Json& in) {
  return Dataset::from_tensor_slices(
      {{"x", tensor_of(in.at("features"))}, {"y", tensor_of(in.at("labels"))}}, "y");
}

void follows_the_guide(const Json& test) {
  const Json& in = test.at("in");
  if (in.at("data") != "([1.],[1.]) repeated") return fail_unknown(test, "the data");
  const Tensor ones = Tensor::of<float>({1000, 1}, std::vector<float>(1000, 1.0f));
  const Dataset data = Dataset::from_tensor_slices({{"x", ones}, {"y", ones}}, "y");
  Trained(in).expect(test.at("out"), data.batch(in.at("global_batch").get<std::int64_t>()),
                     [](const Array& prediction, const Array& label) {
                       return nn::binary_cross_entropy(prediction, label, {.from_logits = true});
                     });
}

void trains_on_repeated_data(const Json& test) {
  const Json& in = test.at("in");
  Trained(in).expect(test.at("out"),
                     examples_of(in).repeat().batch(in.at("global_batch").get<std::int64_t>()),
                     nn::mean_squared_error);
}

void trains_on_partial_batches(const Json& test) {
  const Json& in = test.at("in");
  const std::int64_t batch = in.at("global_batch");
  Trained(in).expect(test.at("out"), examples_of(in).batch(batch), nn::mean_squared_error,
                     {.global_batch_size = batch});
}

void is_model_fit(const Json&) {}  // tests/model/fit_loop_vectors_test.cc

TEST(Vectors, InSyncTraining) {
  testing::run_cases("training", {{"guide_custom_loop", follows_the_guide},
                                  {"random_custom_loop", trains_on_repeated_data},
                                  {"partial_batch_loop", trains_on_partial_batches},
                                  {"guide_fit", is_model_fit},
                                  {"random_fit", is_model_fit}});
}

}  // namespace
}  // namespace cairn
