// Brings one number to 3 by gradient descent, with an installed Cairn: what a program outside of
// its tree looks like.
#include <cstdio>

#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"
using namespace cairn;

int main() {
  OneDeviceStrategy strategy;
  Variable w = strategy.create_variable({.name = "w", .initializer = Initializer::constant(1)});
  nn::SGD optimizer({.learning_rate = 0.1f});
  Function step = strategy.function([&] {
    Array loss = square(w.read() - 3.0f);
    optimizer.minimize(loss);
    return loss;
  });
  auto scope = strategy.scope();
  const float first = strategy.run(step)[0].item<float>();
  float last = first;
  for (int i = 0; i < 50; ++i) last = strategy.run(step)[0].item<float>();
  std::printf("the loss went from %g to %g\n", first, last);
  return last < 0.001f * first ? 0 : 1;
}
