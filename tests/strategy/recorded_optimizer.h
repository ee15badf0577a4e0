// The optimizers of recorded training loops, by the text that a case has.
#pragma once
#include <memory>
#include <string>

#include "core/base/error.h"
#include "nn/nn.h"

namespace cairn::testing {

// "SGD(0.05,momentum=0.9)"
inline std::unique_ptr<nn::Optimizer> recorded_optimizer(const std::string& text) {
  const std::string name = text.substr(0, text.find('('));
  const float rate = std::stof(text.substr(text.find('(') + 1));
  const auto momentum = text.find("momentum=");
  if (name == "SGD")
    return std::make_unique<nn::Sgd>(nn::SgdOptions{
        .learning_rate = rate,
        .momentum = momentum == std::string::npos ? 0 : std::stof(text.substr(momentum + 9))});
  if (name == "Adam") return std::make_unique<nn::Adam>(nn::AdamOptions{.learning_rate = rate});
  if (name == "Adagrad")
    return std::make_unique<nn::Adagrad>(nn::AdagradOptions{.learning_rate = rate});
  throw InvalidArgumentError("no test knows the optimizer " + text);
}

}  // namespace cairn::testing
