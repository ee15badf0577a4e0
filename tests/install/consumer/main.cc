// Brings one number to its target by gradient descent, with an installed Cairn: what a program
// outside of its tree looks like. It has folders named as Cairn's are, and gets its own headers.
#include <cstdio>

#include <cairn/cairn.h>

#include "core/graph/ops.h"
#include "data/dataset/dataset.h"
#include "model/model.h"
using namespace cairn;

int main() {
  OneDeviceStrategy strategy;
  Variable w = strategy.create_variable({.name = "w", .initializer = Initializer::constant(1)});
  nn::SGD optimizer({.learning_rate = 0.1f});
  Function step = strategy.function([&] {
    Array loss = square(w.read() - target());
    optimizer.minimize(loss);
    return loss;
  });
  auto scope = strategy.scope();
  const float first = strategy.run(step)[0].item<float>();
  float last = first;
  for (int i = 0; i < steps(); ++i) last = strategy.run(step)[0].item<float>();
  std::printf("the loss went from %g to %g\n", first, last);
  return good(first, last) ? 0 : 1;
}
