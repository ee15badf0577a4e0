// A layer, a loss, a metric and an update rule of one's own: waves are fitted through noisy points.
//   cairn up --ps 2 --workers 2 -- build/dev/bin/custom_layer --strategy=parameter_server
#include <cstdio>
#include <string>
#include <vector>

#include <cairn/cairn.h>
#include <cairn/core/graph/custom_rule.h>
using namespace cairn;

// sin(x · frequency + phase): [b, n] -> [b, units]. The variables are made at the first call.
struct Waves {
  std::int64_t units;
  nn::LayerVariables made = {};  // shared by copies, which are the same layer
  Array operator()(const Array& x) const {
    const std::vector<Variable>& all = made.in_scope([&](VariableCreator& strategy) {
      return std::vector<Variable>{
          strategy.create_variable({.name = "waves/frequency",
                                    .shape = {x.shape()[1], units},
                                    .initializer = Initializer::normal(0, 6, 1)}),
          strategy.create_variable({.name = "waves/phase",
                                    .shape = {units},
                                    .initializer = Initializer::uniform(-3, 3, 2)})};
    });
    return sin(matmul(x, all[0]) + all[1]);
  }
};

int main(int argc, char** argv) try {
  std::string chosen = argc > 1 ? argv[1] : "--strategy=one_device";
  const auto strategy = make_strategy(chosen.erase(0, chosen.find('=') + 1));
  const auto scope = strategy->scope();
  const Array at = random_normal({20'000, 1}), noise = random_normal({20'000, 1}, 0, 0.02f);
  const Tensor x = at.eval(), y = (sin(at * 6.0f) * at + noise).eval();
  Waves waves{.units = 32};
  nn::Dense last({.units = 1});
  Model model([&](const Array& points) { return last(waves(points)); });
  const auto loss = [](const Array& prediction, const Array& label) {  // outliers count less
    return sqrt(square(prediction - label) + 0.01f);
  };
  // As Adagrad, with the cube root of the sum in the place of the square root.
  const UpdateRule rule = custom_rule("cube", {{"sum", 0.1f}}, [](const RuleInput& in) {
    const Array sum = in.slots[0] + square(in.gradient);
    return RuleOutput{in.value - in.learning_rate * in.gradient / pow(sum, 1.0f / 3), {sum}};
  });
  const nn::MeanMetric near("near", [](const Array& prediction, const Array& label) {
    return cast(abs(prediction - label) < 0.06f, DType::kFloat32);
  });
  const nn::CustomOptimizer optimizer({.rule = rule, .learning_rate = 0.05f});
  model.compile({.optimizer = optimizer, .loss = loss, .metrics = {near}});
  const double before = model.evaluate(x, y).at("near");
  model.fit(x, y, {.epochs = 10, .batch_size = 64, .validation_split = 0.1});
  std::printf("near: %.4f before, %.4f after\n", before, model.evaluate(x, y).at("near"));
} catch (const std::exception& error) {
  std::fprintf(stderr, "custom_layer: %s\n", error.what());
  return 1;
}
