// Attention, positions and GRU.
#include <gtest/gtest.h>

#include <cmath>

#include "core/exec/local_runtime.h"
#include "core/graph/ops.h"
#include "nn/base/training_scope.h"
#include "nn/layers/attention.h"
#include "nn/layers/gru.h"
#include "tests/nn/numeric_gradient.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

class SequenceLayers : public ::testing::Test {
 protected:
  LocalRuntime runtime_;
  Scope scope_{runtime_};
};

// rows x columns of a tensor's values from `at` on.
struct Matrix {
  std::vector<float> values;
  std::size_t columns;
  float at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

Matrix matrix_of(const Variable& variable) {
  return {numbers(variable.read()), static_cast<std::size_t>(variable.shape()[1])};
}

// A textbook's loops: one example [time, width], `seen(i, j)` says whether i may see j.
template <typename Seen>
std::vector<float> attention_by_loops(const MultiHeadAttention& layer, const Matrix& x,
                                      std::size_t heads, std::size_t width, Seen seen) {
  const auto variables = layer.variables();
  const std::size_t time = x.values.size() / x.columns;
  const auto project = [&](int part, const Matrix& in) {
    const Matrix kernel = matrix_of(variables[2 * part]);
    const auto bias = numbers(variables[2 * part + 1].read());
    Matrix out{{}, kernel.columns};
    for (std::size_t i = 0; i < time; ++i)
      for (std::size_t c = 0; c < kernel.columns; ++c) {
        float sum = bias[c];
        for (std::size_t k = 0; k < in.columns; ++k) sum += in.at(i, k) * kernel.at(k, c);
        out.values.push_back(sum);
      }
    return out;
  };
  const Matrix q = project(0, x), k = project(1, x), v = project(2, x);
  Matrix mixed{std::vector<float>(time * heads * width), heads * width};
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t i = 0; i < time; ++i) {
      std::vector<float> weights(time);
      float total = 0;
      for (std::size_t j = 0; j < time; ++j) {
        float score = 0;
        for (std::size_t c = h * width; c < (h + 1) * width; ++c) score += q.at(i, c) * k.at(j, c);
        weights[j] = seen(i, j) ? std::exp(score / std::sqrt(static_cast<float>(width))) : 0;
        total += weights[j];
      }
      for (std::size_t j = 0; j < time; ++j)
        for (std::size_t c = h * width; c < (h + 1) * width; ++c)
          mixed.values[i * mixed.columns + c] += weights[j] / total * v.at(j, c);
    }
  return project(3, mixed).values;
}

std::vector<float> part_of(const std::vector<float>& all, std::size_t begin, std::size_t count) {
  return {all.begin() + begin, all.begin() + begin + count};
}

TEST_F(SequenceLayers, AttentionIsThatOfTheTextbook) {
  for (const bool causal : {false, true}) {
    MultiHeadAttention layer({.num_heads = 2, .key_dim = 3, .causal = causal});
    const Array x = varied({2, 4, 5});
    const auto got = numbers(layer(x));
    ASSERT_EQ(got.size(), 40u);
    for (std::size_t example : {0, 1}) {
      const Matrix own{part_of(numbers(x), example * 20, 20), 5};
      const auto want = attention_by_loops(
          layer, own, 2, 3, [&](std::size_t i, std::size_t j) { return !causal || j <= i; });
      for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(got[example * 20 + i], want[i], 1e-5f) << i;
    }
  }
}

TEST_F(SequenceLayers, AttentionDoesNotSeePaddedPositions) {
  MultiHeadAttention layer({.num_heads = 1, .key_dim = 2});
  const Array x = varied({2, 3, 2});
  const Array mask = floats({2, 3}, {1, 1, 0, 1, 1, 1});
  const auto got = numbers(layer(x, x, mask));
  const auto want = attention_by_loops(layer, {part_of(numbers(x), 0, 6), 2}, 1, 2,
                                       [](std::size_t, std::size_t j) { return j < 2; });
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(got[i], want[i], 1e-5f);
  const auto all = numbers(layer(x));
  for (std::size_t i = 6; i < 12; ++i) EXPECT_NEAR(got[i], all[i], 1e-6f);
  for (const float value : numbers(layer(x, x, zeros_like(mask))))
    EXPECT_TRUE(std::isfinite(value));
}

TEST_F(SequenceLayers, AttentionFromAnotherSequenceHasTheQuerysTime) {
  MultiHeadAttention layer({.num_heads = 2, .key_dim = 3, .value_dim = 4, .output_dim = 7});
  EXPECT_EQ(layer(varied({2, 4, 5}), varied({2, 6, 3}, 9)).shape(), (Shape{2, 4, 7}));
  EXPECT_EQ(layer.variables().size(), 8u);
  EXPECT_EQ(layer.variables()[2].name(), "multi_head_attention/key/kernel");
  EXPECT_EQ(layer.variables()[4].shape(), (Shape{3, 8}));
}

TEST_F(SequenceLayers, AttentionDropsWeightsInTrainingAlone) {
  MultiHeadAttention layer({.num_heads = 1, .key_dim = 2, .dropout = 0.5f});
  const Array x = varied({4, 6, 2});
  EXPECT_EQ(numbers(layer(x)), numbers(layer(x)));
  const TrainingScope training;
  EXPECT_NE(numbers(layer(x)), numbers(layer(x)));
}

TEST_F(SequenceLayers, AttentionHasTheGradientsOfWhatItComputes) {
  Variable x = make_variable("x", varied({2, 3, 2}));
  MultiHeadAttention layer({.num_heads = 2, .key_dim = 2, .causal = true});
  layer(x.read());
  std::vector<Variable> wanted = layer.variables();
  // Every score of a query moves alike with the key's bias, so that its gradient is 0.
  wanted.push_back(x);
  expect_gradients_as_differences([&] { return layer(x.read()); }, wanted);
}

TEST_F(SequenceLayers, AttentionRefusesWhatItCannotTake) {
  EXPECT_THROW(MultiHeadAttention({.num_heads = 0, .key_dim = 1}), InvalidArgumentError);
  EXPECT_THROW(MultiHeadAttention({.num_heads = 1, .key_dim = 1, .dropout = 1}),
               InvalidArgumentError);
  MultiHeadAttention layer({.num_heads = 1, .key_dim = 1});
  EXPECT_THROW(layer.variables(), InvalidArgumentError);
  EXPECT_THROW(layer(floats({1, 2}, {1, 2})), InvalidArgumentError);
  EXPECT_THROW(layer(varied({1, 2, 2}), varied({1, 3, 2}), varied({1, 2})), InvalidArgumentError);
}

TEST_F(SequenceLayers, PositionsAreAddedToEveryExample) {
  PositionalEmbedding layer(
      {.length = 3, .initializer = Initializer::from(floats({3, 1}, {10, 20, 30}))});
  expect_close(layer(floats({2, 2, 1}, {1, 2, 3, 4})), {11, 22, 13, 24});
  expect_close(layer(floats({1, 3, 1}, {0, 0, 0})), {10, 20, 30});
  EXPECT_THROW(layer(varied({1, 4, 1})), InvalidArgumentError);
  EXPECT_THROW(layer(varied({1, 2, 2})), InvalidArgumentError);
  EXPECT_EQ(layer.variables()[0].name(), "positional_embedding/embeddings");
}

float logistic(float x) { return 1 / (1 + std::exp(-x)); }

// One unit and one input, by hand.
TEST_F(SequenceLayers, GruGatesItsStateAsTheReferenceDoes) {
  const float kz = 0.5f, kr = -1, kc = 2, rz = 1, rr = 0.25f, rc = -0.5f;
  GRU layer({.units = 1,
             .return_sequences = true,
             .kernel_initializer = Initializer::from(floats({1, 3}, {kz, kr, kc})),
             .recurrent_initializer = Initializer::from(floats({1, 3}, {rz, rr, rc})),
             .bias_initializer = Initializer::from(floats({2, 3}, {1, 2, 3, 4, 5, 6}))});
  std::vector<float> want;
  float h = 0;
  for (const float x : {1.0f, -2.0f, 0.5f}) {
    const float z = logistic(kz * x + 1 + rz * h + 4), r = logistic(kr * x + 2 + rr * h + 5);
    const float c = std::tanh(kc * x + 3 + r * (rc * h + 6));
    h = z * h + (1 - z) * c;
    want.push_back(h);
  }
  const Array y = layer(floats({1, 3, 1}, {1, -2, 0.5f}));
  EXPECT_EQ(y.shape(), (Shape{1, 3, 1}));
  expect_close(y, want, 1e-5f);
}

TEST_F(SequenceLayers, GruGivesTheLastStateAndGoesOnFromOne) {
  const GRUOptions options{.units = 3, .return_sequences = true, .name = "rnn"};
  GRU all(options);
  const Array x = varied({2, 4, 5});
  const auto states = numbers(all(x));
  const Array half = slice(all(slice(x, 1, 0, 2)), 1, 1, 1);
  const Array rest = slice(all(slice(x, 1, 2, 2), squeeze(half, 1)), 1, 1, 1);
  expect_close(slice(all(x), 1, 3, 1), numbers(rest));
  EXPECT_EQ(states.size(), 24u);
  EXPECT_EQ(GRU({.units = 3})(x).shape(), (Shape{2, 3}));
  EXPECT_EQ(all.variables()[0].shape(), (Shape{5, 9}));
  EXPECT_EQ(all.variables()[1].name(), "rnn/recurrent_kernel");
  EXPECT_EQ(all.variables()[2].shape(), (Shape{2, 9}));
}

TEST_F(SequenceLayers, GruBackwardsReadsTheEndFirst) {
  GRU forwards({.units = 2, .kernel_initializer = "ones"});
  GRU backwards({.units = 2, .go_backwards = true, .kernel_initializer = "ones"});
  expect_close(backwards(floats({1, 3, 1}, {3, 2, 1})),
               numbers(forwards(floats({1, 3, 1}, {1, 2, 3}))));
}

TEST_F(SequenceLayers, GruHasTheGradientsOfWhatItComputes) {
  Variable x = make_variable("x", varied({2, 3, 2}));
  GRU layer({.units = 2});
  layer(x.read());
  std::vector<Variable> wanted = layer.variables();
  wanted.push_back(x);
  expect_gradients_as_differences([&] { return layer(x.read()); }, wanted);
}

TEST_F(SequenceLayers, GruRefusesWhatItCannotTake) {
  EXPECT_THROW(GRU({.units = 0}), InvalidArgumentError);
  GRU layer({.units = 2});
  EXPECT_THROW(layer(floats({1, 2}, {1, 2})), InvalidArgumentError);
  EXPECT_THROW(layer(varied({1, 2, 2}), varied({1, 3})), InvalidArgumentError);
  layer(varied({1, 2, 2}));
  EXPECT_THROW(layer(varied({1, 2, 3})), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
