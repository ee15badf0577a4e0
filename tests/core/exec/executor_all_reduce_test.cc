// All-reduces: when a step begins and awaits them, and that replicas which reduce their gradients
// train as one.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <optional>

#include "core/base/random.h"
#include "core/exec/wave_cutter.h"
#include "tests/core/executor_testing.h"
#include "tests/core/fake_device.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kReplicas = 2;

// ---- order in a plan ----

// "matmul, read | begin" and so on, one text a wave; constants and arguments left out.
std::vector<std::string> wave_texts(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Wave& wave : plan.waves) {
    std::string text;
    for (std::int32_t i : wave.compute) {
      const Node& node = plan.graph.nodes[static_cast<std::size_t>(i)];
      if (!node.inputs.empty()) text += str(text.empty() ? "" : " ", node.op->name);
    }
    if (!wave.reads.empty()) text += " > pull";
    if (!wave.updates.empty()) text += " > push";
    if (!wave.reductions.empty()) text += str(" > begin ", wave.reductions.size());
    if (wave.awaited >= 0) text += str(" > await ", wave.awaited);
    texts.push_back(text);
  }
  return texts;
}

std::shared_ptr<const Plan> plan_for(const ConcreteFunction& function, std::int32_t replicas) {
  return make_plan(function.graph, std::vector<VariableId>(function.variables.size()),
                   {.replicas = replicas});
}

ConcreteFunction two_layers() {
  Variable w = make_variable("w", {4});
  return trace_function({floats({4}), floats({4})}, [&](const auto& in) {
    Array first = all_reduce(ReduceOp::kSum, exp(arg(in, 0)));
    Array second = all_reduce(ReduceOp::kSum, tanh(arg(in, 1)));
    Array apart = log(arg(in, 0));
    w.update(kSgd, square(first), 0.1f);
    return std::vector<Array>{sin(second), apart};
  });
}

TEST(AllReducePlan, BeginsAsSoonAsTheInputsAreReadyAndIsAwaitedBeforeWhatDependsOnIt) {
  EXPECT_THAT(wave_texts(*plan_for(two_layers(), kReplicas)),
              ElementsAre("exp > begin 1", "tanh > begin 1", "log > await 0", "square > await 1",
                          "sin > push"));
}

TEST(AllReducePlan, OfOneReplicaIsNoWave) {
  EXPECT_THAT(wave_texts(*plan_for(two_layers(), 1)),
              ElementsAre("exp all_reduce tanh all_reduce log square sin > push"));
}

TEST(AllReducePlan, ReductionsThatWaitForNothingMoreBeginTogetherInProgramOrder) {
  auto traced = trace_function({floats({4})}, [&](const auto& in) {
    Array x = exp(arg(in, 0)), y = tanh(x);
    return std::vector<Array>{all_reduce(ReduceOp::kSum, y), all_reduce(ReduceOp::kMean, x),
                              all_reduce(ReduceOp::kSum, {x, y})[1]};
  });
  auto plan = plan_for(traced, kReplicas);
  EXPECT_THAT(wave_texts(*plan), ElementsAre("exp tanh > begin 3", " > await 0", ""));
  std::vector<std::string> order;
  for (std::int32_t i : plan->waves[0].reductions)
    order.push_back(
        plan->graph.nodes[static_cast<std::size_t>(i)].attributes.get<std::string>("reduction"));
  EXPECT_THAT(order, ElementsAre("sum", "mean", "sum"));
}

TEST(AllReducePlan, OneThatNeedsAnotherWaitsForIt) {
  auto traced = trace_function({floats({4})}, [&](const auto& in) {
    Array mean = all_reduce(ReduceOp::kMean, arg(in, 0));
    return all_reduce(ReduceOp::kMean, square(arg(in, 0) - mean));
  });
  EXPECT_THAT(wave_texts(*plan_for(traced, kReplicas)),
              ElementsAre(" > begin 1", " > await 0", "sub square > begin 1", " > await 1", ""));
}

TEST(AllReducePlan, NoneOvertakesAnEarlierOneThatIsNotReady) {
  Variable v = make_variable("v", {4});
  auto traced = trace_function({floats({4})}, [&](const auto& in) {
    v.assign(arg(in, 0));
    Array late = all_reduce(ReduceOp::kSum, v.read());
    return std::vector<Array>{all_reduce(ReduceOp::kSum, exp(arg(in, 0))), late};
  });
  EXPECT_THAT(wave_texts(*plan_for(traced, kReplicas)),
              ElementsAre(" > push", " > pull", " > begin 1", "exp > begin 1", " > await 1", ""));
}

// ---- replicas, each a step machine of its own ----

// Has the shares of all replicas, and reduces those of a ticket when it pleases between the last
// begin and the first await.
class FakeCollective {
 public:
  explicit FakeCollective(std::uint64_t seed) : random_(seed) {}

  void begin(int replica, const Step::AllReduce& begun) {
    auto& list = begun_[static_cast<std::size_t>(replica)];
    ASSERT_EQ(static_cast<std::size_t>(begun.ticket), list.size());
    list.emplace_back(begun.reductions.begin(), begun.reductions.end());
    if (random_.below(2) == 0) reduce_what_is_there();
  }
  // False: another replica has not begun it yet.
  bool ended(const Step::Await& await) {
    reduce_what_is_there();
    return reduced_ > static_cast<std::size_t>(await.ticket);
  }
  std::size_t reduced() const { return reduced_; }

 private:
  void reduce_what_is_there() {
    for (; reduced_ < begun_[0].size() && reduced_ < begun_[1].size(); ++reduced_) {
      auto &a = begun_[0][reduced_], &b = begun_[1][reduced_];
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t k = 0; k < a.size(); ++k) reduce(a[k], b[k]);
    }
  }
  static void reduce(AllReduceBuffer& a, AllReduceBuffer& b) {
    ASSERT_EQ(a.elements, b.elements);
    ASSERT_EQ(a.dtype, DType::kFloat32);
    auto *x = reinterpret_cast<float*>(a.values), *y = reinterpret_cast<float*>(b.values);
    for (std::int64_t i = 0; i < a.elements; ++i)
      x[i] = y[i] = (x[i] + y[i]) / (a.op == ReduceOp::kMean ? 2 : 1);
  }

  Random random_;
  std::vector<std::vector<AllReduceBuffer>> begun_[kReplicas];  // by ticket
  std::size_t reduced_ = 0;                                     // tickets
};

struct Replica {
  explicit Replica(Device& device = cpu_device()) : workspace(device) {}

  std::unique_ptr<LocalStore> store = std::make_unique<LocalStore>();
  Workspace workspace;
  std::optional<Step> step;
  std::optional<Step::Await> awaiting;
};

// One turn: true as long as there is more to do.
bool advance(Replica& replica, int number, FakeCollective& collective) {
  if (replica.awaiting && !collective.ended(*replica.awaiting)) return true;
  replica.awaiting.reset();
  const Step::Next needed = replica.step->next();
  if (auto* pull = std::get_if<Step::Pull>(&needed)) replica.store->pull({}, pull->reads);
  if (auto* push = std::get_if<Step::Push>(&needed)) replica.store->push({}, push->updates);
  if (auto* begun = std::get_if<Step::AllReduce>(&needed)) collective.begin(number, *begun);
  if (auto* await = std::get_if<Step::Await>(&needed)) replica.awaiting = *await;
  return !std::holds_alternative<Step::Finished>(needed);
}

// Runs the plan once on every replica, in an order drawn from the seed; the outputs by replica.
std::vector<std::vector<Tensor>> run_together(const std::shared_ptr<const Plan>& plan,
                                              std::span<Replica> replicas,
                                              const std::vector<std::vector<Tensor>>& arguments,
                                              std::uint64_t seed) {
  FakeCollective collective(seed);
  Random random(seed + 1);
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    StepContext context{.replica = static_cast<std::int32_t>(r), .replicas = kReplicas};
    replicas[r].step.emplace(plan, replicas[r].workspace, *replicas[r].store, context,
                             RunInputs{arguments[r], {}});
  }
  std::vector<std::vector<Tensor>> outputs(replicas.size());
  std::vector<bool> going(replicas.size(), true);
  while (going[0] || going[1]) {
    const auto r = static_cast<std::size_t>(random.below(kReplicas));
    if (!going[r] || advance(replicas[r], static_cast<int>(r), collective)) continue;
    going[r] = false;
    outputs[r] = replicas[r].step->outputs();
  }
  for (Replica& replica : replicas) replica.step.reset();
  return outputs;
}

std::shared_ptr<const VariableSpec> spec_of(const std::string& name, const Tensor& value) {
  auto spec = std::make_shared<VariableSpec>();
  spec->name = name;
  spec->shape = value.shape();
  spec->initializer = Initializer::from(value);
  return spec;
}

// A network of two layers; its step reduces the gradients.
struct Network {
  std::vector<std::shared_ptr<const VariableSpec>> specs = {spec_of("first", noise({6, 5}, 1)),
                                                            spec_of("bias", noise({5}, 2)),
                                                            spec_of("second", noise({5, 1}, 3))};

  void make_variables(LocalStore& store) const {
    for (const auto& spec : specs) store.create(spec);
  }
  ConcreteFunction step() const {
    std::vector<Variable> variables;
    for (const auto& spec : specs) variables.emplace_back(spec);
    return trace_function({floats({kAny, 6}), floats({kAny, 1})}, [&](const auto& in) {
      Array hidden = tanh(matmul(arg(in, 0), variables[0].read()) + variables[1].read());
      Array loss = mean(square(matmul(hidden, variables[2].read()) - arg(in, 1)));
      std::vector<Array> gradients;
      const auto all = variable_gradients(loss);
      for (const auto& gradient : all) gradients.push_back(gradient.dense);
      const auto reduced = all_reduce(ReduceOp::kMean, gradients);
      for (std::size_t i = 0; i < all.size(); ++i) all[i].variable.update(kSgd, reduced[i], 0.3f);
      return all_reduce(ReduceOp::kMean, loss);
    });
  }
  std::shared_ptr<const Plan> plan(std::int32_t replicas) const {
    const ConcreteFunction traced = step();
    std::vector<VariableId> bound;
    for (const auto& used : traced.variables)
      for (VariableId id = 0; id < specs.size(); ++id)
        if (specs[id]->name == used->name) bound.push_back(id);
    return make_plan(traced.graph, bound, {.replicas = replicas});
  }
};

std::vector<float> contents(const LocalStore& store, VariableId id) {
  std::vector<Read> reads{{id, {}, {}}};
  const_cast<LocalStore&>(store).pull({}, reads);
  return floats_of(reads[0].value);
}

TEST(AllReduceTraining, TwoReplicasStayBitEqualAndTrainAsOneWithTheWholeBatch) {
  const Network network;
  std::vector<Replica> replicas(kReplicas);
  for (Replica& replica : replicas) network.make_variables(*replica.store);
  LocalStore alone;
  network.make_variables(alone);
  const auto together = network.plan(kReplicas), whole = network.plan(1);
  Workspace workspace;
  float first_loss = 0, last_loss = 0;
  for (std::uint64_t step = 0; step < 40; ++step) {
    const Tensor x = noise({16, 6}, 100 + step % 4), y = noise({16, 1}, 200 + step % 4);
    const auto outputs = run_together(
        together, replicas, {{x.rows(0, 8), y.rows(0, 8)}, {x.rows(8, 16), y.rows(8, 16)}}, step);
    const float loss = run(whole, workspace, alone, {}, {x, y}, {})[0].item<float>();
    EXPECT_EQ(outputs[0][0].item<float>(), outputs[1][0].item<float>());
    EXPECT_NEAR(outputs[0][0].item<float>(), loss, 1e-6f);
    for (VariableId id = 0; id < alone.size(); ++id) {
      const auto a = contents(*replicas[0].store, id), b = contents(*replicas[1].store, id),
                 c = contents(alone, id);
      ASSERT_EQ(a, b) << "step " << step;
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], c[i], 1e-6f) << "step " << step;
    }
    (step == 0 ? first_loss : last_loss) = loss;
  }
  EXPECT_LT(last_loss, first_loss);
}

// A collective reads and writes the host's memory, and these devices have their own.
TEST(AllReduceTraining, ReplicasOnDevicesWithMemoryOfTheirOwnTrainBitForBitAsOnTheCpu) {
  const Network network;
  const auto plan = network.plan(kReplicas);
  FakeDevice first, second;
  std::array<Replica, kReplicas> on_cpu, on_devices{Replica(first), Replica(second)};
  for (auto* replicas : {&on_cpu, &on_devices})
    for (Replica& replica : *replicas) network.make_variables(*replica.store);
  for (std::uint64_t step = 0; step < 8; ++step) {
    std::vector<std::vector<Tensor>> batches;
    for (std::uint64_t r = 0; r < kReplicas; ++r)
      batches.push_back({noise({8, 6}, 10 * step + r), noise({8, 1}, 10 * step + r + 5)});
    const auto there = run_together(plan, on_devices, batches, step),
               here = run_together(plan, on_cpu, batches, step);
    for (std::size_t r = 0; r < kReplicas; ++r) {
      EXPECT_EQ(there[r][0].item<float>(), here[r][0].item<float>()) << "step " << step;
      for (VariableId id = 0; id < network.specs.size(); ++id)
        ASSERT_EQ(contents(*on_devices[r].store, id), contents(*on_cpu[r].store, id));
    }
  }
}

// The loss of all replicas together, against differences of one replica's input.
TEST(AllReduceTraining, TheGradientIsThatOfAllReplicasLosses) {
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    auto traced = trace_function({floats({3}), floats({3})}, [&](const auto& in) {
      const auto reduced = all_reduce(op, {square(arg(in, 0)), tanh(arg(in, 0))});
      Array loss = sum(exp(reduced[0]) * arg(in, 1) * reduced[1]);
      return std::vector<Array>{loss, grad(loss, {arg(in, 0)})[0]};
    });
    const auto plan = plan_for(traced, kReplicas);
    std::vector<Replica> replicas(kReplicas);
    const std::vector<Tensor> x = {noise({3}, 5), noise({3}, 6)},
                              w = {noise({3}, 7), noise({3}, 8)};
    auto losses = [&](const Tensor& first) {
      auto out = run_together(plan, replicas, {{first, w[0]}, {x[1], w[1]}}, 9);
      return out[0][0].item<float>() + out[1][0].item<float>();
    };
    const auto outputs = run_together(plan, replicas, {{x[0], w[0]}, {x[1], w[1]}}, 9);
    const auto gradient = outputs[0][1].values<float>();
    for (std::size_t e = 0; e < 3; ++e) {
      Tensor above = x[0].clone(), below = x[0].clone();
      above.mutable_values<float>()[e] += 1e-2f;
      below.mutable_values<float>()[e] -= 1e-2f;
      const float difference = (losses(above) - losses(below)) / 2e-2f;
      EXPECT_NEAR(gradient[e], difference, 1e-2f + 1e-2f * std::abs(difference));
    }
  }
}

TEST(AllReduceTraining, AnInputThatOthersReadTooIsNotWrittenOver) {
  auto traced = trace_function({floats({2})}, [&](const auto& in) {
    Array x = arg(in, 0) + 1.0f;
    Array reduced = all_reduce(ReduceOp::kSum, {x, arg(in, 0)})[0];
    return std::vector<Array>{x, reduced, all_reduce(ReduceOp::kSum, arg(in, 0))};
  });
  std::vector<Replica> replicas(kReplicas);
  const Tensor a = tensor({2}, {1, 2}), b = tensor({2}, {10, 20});
  const auto out = run_together(plan_for(traced, kReplicas), replicas, {{a}, {b}}, 1);
  EXPECT_THAT(floats_of(out[0][0]), ElementsAre(2, 3));
  EXPECT_THAT(floats_of(out[1][0]), ElementsAre(11, 21));
  EXPECT_THAT(floats_of(out[1][1]), ElementsAre(13, 24));
  EXPECT_THAT(floats_of(out[0][2]), ElementsAre(11, 22));
  EXPECT_THAT(floats_of(a), ElementsAre(1, 2));
}

TEST(AllReduceTraining, WhatAStepHadBegunWhenItWasGivenUpIsNotOverwritten) {
  auto traced = trace_function(
      {floats({2})}, [&](const auto& in) { return all_reduce(ReduceOp::kSum, exp(arg(in, 0))); });
  const auto plan = plan_for(traced, kReplicas);
  FakeDevice apart;
  for (Device* device : {&cpu_device(), static_cast<Device*>(&apart)}) {
    Workspace workspace(*device);
    LocalStore store;
    const StepContext context{.replicas = kReplicas};
    std::vector<AllReduceBuffer> held;
    for (float x : {0.0f, 1.0f}) {
      Step step(plan, workspace, store, context, {{tensor({2}, {x, x})}, {}});
      const Step::Next needed = step.next();
      held.push_back(std::get<Step::AllReduce>(needed).reductions[0]);
      EXPECT_TRUE(std::holds_alternative<Step::Await>(step.next()));
    }
    EXPECT_NE(held[0].values, held[1].values);
    EXPECT_EQ(*reinterpret_cast<const float*>(held[0].values), 1.0f) << device->name();
  }
}

// ---- one replica, and where there is no collective ----

TEST(AllReduceAlone, IsTheInputItselfWithoutACopy) {
  auto traced = trace_function({floats({2})}, [&](const auto& in) {
    return std::vector<Array>{all_reduce(ReduceOp::kMean, arg(in, 0)),
                              all_reduce(ReduceOp::kSum, {arg(in, 0), exp(arg(in, 0))})[0]};
  });
  Workspace workspace;
  LocalStore store;
  const Tensor x = tensor({2}, {3, 4});
  const auto out = run(plan_for(traced, 1), workspace, store, {}, {x}, {});
  EXPECT_EQ(out[0].raw(), x.raw());
  EXPECT_EQ(out[1].raw(), x.raw());
}

TEST(AllReduceAlone, CanBeComputedAtOnce) {
  EXPECT_THAT(floats_of(all_reduce(ReduceOp::kMean, Array(tensor({2}, {3, 4}))).eval()),
              ElementsAre(3, 4));
}

TEST(AllReduceAlone, ManyReplicasWithoutACollectiveAreAnErrorThatSaysSo) {
  auto traced = trace_function(
      {floats({2})}, [&](const auto& in) { return all_reduce(ReduceOp::kSum, arg(in, 0)); });
  Workspace workspace;
  LocalStore store;
  const StepContext two{.replicas = kReplicas};
  const std::vector<Tensor> x{tensor({2}, {3, 4})};
  EXPECT_THAT(message_of<FailedPreconditionError>(
                  [&] { run(plan_for(traced, 2), workspace, store, two, x, {}); }),
              HasSubstr("no collective"));
  EXPECT_THAT(message_of([&] { run(plan_for(traced, 1), workspace, store, two, x, {}); }),
              HasSubstr("2 replicas, by a plan whose all-reduces are of 1"));
}

TEST(AllReduceRecording, RefusesWhatCannotBeReduced) {
  EXPECT_THAT(message_of([] { all_reduce(ReduceOp::kMean, Array(ids_of({1}))); }),
              HasSubstr("all_reduce(int64[1])"));
  EXPECT_THAT(message_of([] {
                all_reduce(ReduceOp::kSum, {Array(1.0f), Array(Tensor::strings({1}, {"a"}))});
              }),
              HasSubstr("input 1 is string"));
  EXPECT_THROW(all_reduce(ReduceOp::kSum, std::vector<Array>{}), InvalidArgumentError);
  EXPECT_THROW(all_reduce(ReduceOp::kSum, Array()), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn
