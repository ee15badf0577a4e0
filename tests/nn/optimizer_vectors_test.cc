// The reference's own updates, step by step: through the optimizers as a program uses them, and as
// pushes to ps shards.
#include <gtest/gtest.h>

#include "core/exec/local_runtime.h"
#include "core/kernels/cuda/library.h"
#include "tests/nn/cut_variable.h"
#include "tests/nn/optimizer_vectors.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

using testing::tensor_of;

std::vector<float> slot_values(const RowBlock& block, std::size_t slot) {
  std::vector<float> values;
  const auto* base = reinterpret_cast<const float*>(block.base);
  for (std::int64_t row = 0; row < block.rows; ++row)
    for (std::int64_t j = 0; j < block.dim; ++j)
      values.push_back(base[row * block.row_stride +
                            static_cast<std::int64_t>(slot + 1) * block.slot_offset + j]);
  return values;
}

// SGD without momentum has no slot here; the newer reference keeps its last step in one, and
// multiplies it by 0.
void expect_slots(const Json& test, const UpdateRule& rule, const RowBlock& block) {
  if (rule.kind == RuleKind::kSgd) return;
  std::map<std::string, Json> want;
  for (const auto& [name, value] : test.at("out").at("ok").at("slots").items())
    if (const std::string ours = slot_name(test.at("in").at("optimizer"), name); !ours.empty())
      want[ours] = value;
  const std::vector<SlotSpec> slots = rule_slots(rule);
  ASSERT_EQ(want.size(), slots.size());
  for (std::size_t k = 0; k < slots.size(); ++k)
    expect_near(slot_values(block, k), want.at(std::string(slots[k].name)), 1e-5,
                "slot " + std::string(slots[k].name));
}

Device& device_under_test() {
#ifdef CAIRN_ON_GPU
  return gpu(0);
#else
  return cpu_device();
#endif
}

void replay_locally(const Json& test) {
  LocalRuntime runtime(0, device_under_test());
  Scope scope(runtime);
  const Json& ok = test.at("out").at("ok");
  const std::unique_ptr<Optimizer> optimizer = optimizer_of(test.at("in"));
  const Tensor start = tensor_of(test.at("in").at("variable"));
  const Variable variable = runtime.create_variable(
      {.name = "v", .shape = start.shape(), .initializer = Initializer::from(start)});
  const Json& gradients = test.at("in").at("gradients");
  for (std::size_t step = 0; step < gradients.size(); ++step) {
    optimizer->apply_gradients({gradient_of(variable, gradients[step])});
    expect_near(numbers(variable.read()), ok.at("after_each_step")[step], 1e-5,
                "after step " + std::to_string(step));
    if (::testing::Test::HasFailure()) return;
  }
  expect_slots(test, optimizer->rule(), runtime.store().block(0));
}

// The push of a worker for a recorded gradient: clipped, then rows of equal ids summed.
Gradient pushed(const VariableGradient& gradient, std::int64_t dim) {
  Gradient made{{}, !gradient.is_sparse()};
  const Tensor values = (made.dense ? gradient.dense : gradient.sparse.rows).eval();
  const Tensor ids = made.dense ? Tensor() : gradient.sparse.ids.eval();
  const std::int64_t rows = made.dense ? gradient.variable.spec().rows() : ids.elements();
  for (std::int64_t i = 0; i < rows; ++i) {
    Floats& sum =
        made.rows[made.dense ? i : ids.values<std::int64_t>()[static_cast<std::size_t>(i)]];
    sum.resize(static_cast<std::size_t>(dim));
    for (std::int64_t j = 0; j < dim; ++j)
      sum[static_cast<std::size_t>(j)] +=
          values.values<float>()[static_cast<std::size_t>(i * dim + j)];
  }
  return made;
}

LearningRate rate_of(const Json& in, const Json& config) {
  const float initial = config.at("learning_rate");
  if (!in.at("arguments").contains("decay")) return initial;
  return InverseTimeDecay({.initial_learning_rate = initial,
                           .decay_steps = 1,
                           .decay_rate = in.at("arguments").at("decay").get<float>()});
}

float rate_at(const LearningRate& rate, std::size_t step) {
  return rate.schedule() == nullptr
             ? rate.value()
             : (*rate.schedule())(Array(static_cast<float>(step))).eval().item<float>();
}

// Whole on one shard, and cut over three: every update must be the reference's, and the cut must
// not show in a single bit.
void replay_on_shards(const Json& test) {
  const Json &in = test.at("in"), &ok = test.at("out").at("ok");
  const UpdateRule rule = optimizer_of(in)->rule();
  const LearningRate rate = rate_of(in, ok.at("config"));
  const Tensor start = tensor_of(in.at("variable"));
  const auto spec = ps::variable("v", start.shape(), Initializer::from(start));
  const Variable variable(spec);
  CutVariable whole(spec, rule, {{0, spec->rows()}}),
      cut(spec, rule, split_rows(spec->rows(), std::min<std::int64_t>(3, spec->rows())));
  for (std::size_t step = 0; step < in.at("gradients").size(); ++step) {
    const Gradient gradient = pushed(
        clip({gradient_of(variable, in.at("gradients")[step])}, clipping_of(in.at("arguments")))[0],
        spec->dim());
    whole.push(gradient, rate_at(rate, step));
    cut.push(gradient, rate_at(rate, step));
    expect_near(whole.read(), ok.at("after_each_step")[step], 1e-5,
                "on a shard after step " + std::to_string(step));
    EXPECT_EQ(cut.read(), whole.read()) << "on three shards after step " << step;
    if (::testing::Test::HasFailure()) return;
  }
}

void replay(const Json& test) {
  replay_locally(test);
  if (!::testing::Test::HasFailure()) replay_on_shards(test);
}

LearningRate schedule_of(const Json& in) {
  const std::string kind = in.at("schedule");
  const Json& c = in.at("config");
  if (c.contains("boundaries")) return PiecewiseConstantDecay({c.at("boundaries"), c.at("values")});
  const float initial = c.at("initial_learning_rate");
  const std::int64_t steps =
      c.contains("first_decay_steps") ? c.at("first_decay_steps") : c.at("decay_steps");
  if (c.contains("first_decay_steps"))
    return CosineDecayRestarts(
        {initial, steps, c.value("t_mul", 2.0f), c.value("m_mul", 1.0f), c.value("alpha", 0.0f)});
  if (c.contains("end_learning_rate"))
    return PolynomialDecay(
        {initial, steps, c.at("end_learning_rate"), c.at("power"), c.at("cycle")});
  if (kind == "inverse")
    return InverseTimeDecay({initial, steps, c.at("decay_rate"), c.at("staircase")});
  if (c.contains("decay_rate"))
    return ExponentialDecay({initial, steps, c.at("decay_rate"), c.at("staircase")});
  if (!c.contains("alpha"))
    throw NotFoundError("the case wants schedule \"" + kind + "\", which this test does not know");
  CosineDecayOptions cosine{
      .initial_learning_rate = initial, .decay_steps = steps, .alpha = c.at("alpha")};
  if (c.contains("warmup_target") && !c.at("warmup_target").is_null())
    cosine.warmup_target = c.at("warmup_target").get<float>();
  take(c, "warmup_steps", cosine.warmup_steps);
  return CosineDecay(cosine);
}

void replay_schedule(const Json& test) {
  const LearningRate rate = schedule_of(test.at("in"));
  const Json& want = test.at("out").at("rate_at_step");
  for (std::size_t step = 0; step < want.size(); ++step)
    EXPECT_NEAR((*rate.schedule())(Array(static_cast<float>(step))).eval().item<float>(),
                want[step].get<float>(), 2e-8f)
        << "at step " << step;
}

void expect_refusal(const Json& test) { EXPECT_THROW(replay_locally(test), InvalidArgumentError); }

void replay_case(const Json& test) {
  const std::string kind = test.at("kind");
  if (kind == "schedules") return replay_schedule(test);
  if (kind != "dense" && kind != "sparse" && kind != "sparse_edges")
    throw NotFoundError("a case of kind \"" + kind + "\", which this test does not know");
  if (test.at("out").contains("error")) return expect_refusal(test);
  replay(test);
}

TEST(OptimizerVectors, AllAgreeWithTheReference) {
  const Json all = testing::load_vectors("optimizers");
  std::size_t ran = 0;
  for (const Json& test : all.at("cases")) {
    SCOPED_TRACE(test.at("id").get<std::string>());
    EXPECT_NO_THROW(replay_case(test));
    ++ran;
    if (HasFailure()) return;  // one case is enough to read
  }
  EXPECT_EQ(ran, all.at("cases").size());
  EXPECT_GT(ran, 0u);
}

}  // namespace
}  // namespace cairn::nn
