#include "nn/layers/mmoe.h"

#include "core/graph/ops.h"

namespace cairn::nn {

MMoE::MMoE(MMoEOptions options) : name_(options.name, "mmoe") {
  if (options.tasks < 1 || options.experts < 1)
    throw InvalidArgumentError(str("layer \"", name_.get(),
                                   "\": tasks and experts must be at least 1, got ", options.tasks,
                                   " and ", options.experts));
  for (int i = 0; i < options.experts; ++i)
    parts_.experts.emplace_back(MlpOptions{.units = options.expert_units,
                                           .activation = options.activation,
                                           .last_linear = false,
                                           .name = str(name_.get(), "/expert_", i),
                                           .seed = options.seed});
  for (int i = 0; i < options.tasks; ++i) {
    parts_.gates.emplace_back(DenseOptions{.units = options.experts,
                                           .activation = "softmax",
                                           .use_bias = false,
                                           .name = str(name_.get(), "/gate_", i),
                                           .seed = options.seed});
    if (!options.tower_units.empty())
      parts_.towers.emplace_back(MlpOptions{.units = options.tower_units,
                                            .activation = options.activation,
                                            .name = str(name_.get(), "/tower_", i),
                                            .seed = options.seed});
  }
}

// A task's mixture is a product for each example: [1, experts] by [experts, width].
std::vector<Array> MMoE::operator()(const Array& x) const {
  std::vector<Array> results;
  for (const Mlp& expert : parts_.experts) results.push_back(expert(x));
  const Array experts = stack(results, 1);
  std::vector<Array> tasks;
  for (std::size_t i = 0; i < parts_.gates.size(); ++i) {
    const Array weights = expand_dims(parts_.gates[i](x), 1);
    const Array mixture = squeeze(batch_matmul(weights, experts), 1);
    tasks.push_back(parts_.towers.empty() ? mixture : parts_.towers[i](mixture));
  }
  return tasks;
}

std::vector<Variable> MMoE::variables() const {
  std::vector<Variable> all;
  const auto add = [&](const auto& layers) {
    for (const auto& layer : layers)
      for (const Variable& variable : layer.variables()) all.push_back(variable);
  };
  add(parts_.experts);
  add(parts_.gates);
  add(parts_.towers);
  return all;
}

}  // namespace cairn::nn
