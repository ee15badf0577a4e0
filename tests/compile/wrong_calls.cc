// Calls that must not compile. A line "// says: ..." is the beginning of the sentence that the
// compiler must print for what follows it; wrong_calls.cmake compares, and fails for any other
// error.
#include <string>
#include <vector>

#include "core/graph/ops.h"
#include "strategy/servers/cluster_coordinator.h"

namespace cairn {

void functions(Strategy& strategy) {
  // These calls compile.
  strategy.function(
      [](Array x, const Array& y, Iterator batches) { return x + y + batches.get_next().label; });
  strategy.function([](Array x) noexcept { return std::vector<Array>{x}; });
  strategy.function([] {});
  // says: A Function is made of a lambda
  strategy.function(3);
  // says: A Function is made of a lambda
  strategy.function([](auto x) { return x; });
  // says: A traced function takes Arrays and Iterators
  strategy.function([](float x) { return Array(x); });
  // says: A traced function takes Arrays and Iterators
  strategy.function([](Array& x) { return x; });
  // says: A traced function takes Arrays and Iterators
  strategy.function([](Array x, const std::string& name) { return name.empty() ? x : -x; });
  // says: A traced function takes Arrays and Iterators
  strategy.function([](const Tensor& x) { return Array(x); });
  // says: A traced function takes Arrays and Iterators
  strategy.function([](Batch batch) { return batch.label; });
  // says: A traced function returns nothing, an Array
  strategy.function([](Array) { return std::string("loss"); });
  // says: A traced function returns nothing, an Array
  strategy.function([](Array x) {
    return std::vector<std::pair<Array, const char*>>{{x, "loss"}};
  });
}

void arrays(Array x, Array y) {
  // says: An Array has no truth value
  if (x < y) x += y;
}

void datasets(const Dataset& dataset) {
  dataset.map([](Features features) { return Outputs{{"age", features["age"]}}; });
  // says: The function of Dataset::map, filter or take_while takes
  dataset.map([](Array x) { return Outputs{{"x", x}}; });
}

void runs(Strategy& strategy, Function& step, std::string text, float* pointer) {
  strategy.run(step, {Tensor(), Array(1), 2.0f});
  // says: An argument of Strategy::run is
  strategy.run(step, {text});
  // says: An argument of Strategy::run is
  strategy.run(step, {Tensor(), pointer});
}

void schedules(ClusterCoordinator& on, Strategy& strategy, Function step, const Function& constant,
               RemoteValue value) {
  std::vector<ScheduleArgument> arguments = {Tensor(), 1.0f, 2, Array(3)};
  on.schedule(step);
  on.schedule(step, arguments);
  on.schedule(step, {Tensor(), on.create_shared_dataset(Dataset::range(3))});
  const std::string text = "loss";
  const double* pointer = nullptr;
  // says: schedule takes a Function that has a name
  on.schedule([] { return Array(7); });
  // says: schedule takes a Function that has a name
  on.schedule(3);
  // says: schedule takes a Function that has a name
  on.schedule(strategy.function([] {}), {Tensor()});
  // says: schedule takes a Function that has a name
  on.schedule(constant);
  // says: The arguments of schedule stand in braces
  on.schedule(step, Tensor());
  // says: The arguments of schedule stand in braces
  on.schedule(step, Tensor(), Array(1));
  // says: A RemoteValue cannot be an argument
  on.schedule(step, {value});
  // says: An argument of schedule is a Tensor
  on.schedule(step, {text});
  // says: An argument of schedule is a Tensor
  on.schedule(step, {Tensor(), pointer});
}

}  // namespace cairn
