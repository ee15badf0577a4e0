// Safe lookups, against the rule written out as loops.
#include "nn/layers/safe_lookup.h"

#include <gtest/gtest.h>

#include "core/graph/function.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

constexpr std::size_t kDim = 2;

Variable table() {
  return make_variable("safe", floats({5, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41}));
}

struct Example {
  std::vector<std::int64_t> ids;
  std::vector<float> weights;
};
const std::vector<Example> kExamples = {{{3, -1, 1}, {1, 5, 0.5f}},
                                        {{-1, -7, -2}, {1, 1, 1}},
                                        {{2, 4, 2}, {0, 2, 3}},
                                        {{1, 1, -1}, {-1, 0, 2}}};

// tf.nn.safe_embedding_lookup_sparse: prune, look up, combine.
std::vector<float> expected(Combiner combiner, bool weighted, std::optional<std::int64_t> instead) {
  std::vector<float> all;
  for (const Example& example : kExamples) {
    std::vector<float> sum(kDim);
    float weights = 0, squares = 0;
    bool any = false;
    for (std::size_t i = 0; i < example.ids.size(); ++i) {
      const float w = weighted ? example.weights[i] : 1;
      if (example.ids[i] < 0 || (weighted && w <= 0 && combiner != Combiner::kSum)) continue;
      any = true;
      weights += w;
      squares += w * w;
      for (std::size_t j = 0; j < kDim; ++j)
        sum[j] += w * static_cast<float>(10 * example.ids[i] + static_cast<std::int64_t>(j));
    }
    const float by = combiner == Combiner::kMean    ? weights
                     : combiner == Combiner::kSqrtn ? std::sqrt(squares)
                                                    : 1;
    for (std::size_t j = 0; j < kDim; ++j)
      all.push_back(!any && instead ? static_cast<float>(10 * *instead) + static_cast<float>(j)
                    : by == 0       ? 0
                                    : sum[j] / by);
  }
  return all;
}

Tensor all_ids() {
  std::vector<std::int64_t> ids;
  for (const Example& one : kExamples) ids.insert(ids.end(), one.ids.begin(), one.ids.end());
  return Tensor::of<std::int64_t>({12}, ids);
}
Tensor all_weights() {
  std::vector<float> weights;
  for (const Example& one : kExamples)
    weights.insert(weights.end(), one.weights.begin(), one.weights.end());
  return Tensor::of<float>({12}, weights);
}

TEST(SafeLookup, LeavesOutIdsThatAreMissingOrHaveNoWeight) {
  const Array splits = ids({5}, {0, 3, 6, 9, 12});
  for (Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtn})
    for (bool weighted : {false, true})
      for (std::optional<std::int64_t> instead : {std::optional<std::int64_t>(), {4}}) {
        SCOPED_TRACE(str("combiner ", static_cast<int>(combiner), weighted ? ", weighted" : "",
                         instead ? ", a default" : ""));
        SafeLookupOptions options{combiner, instead, {}};
        if (weighted) options.weights = all_weights();
        const auto wanted = expected(combiner, weighted, instead);
        expect_close(safe_embedding_lookup_sparse(table(), all_ids(), splits, options), wanted);
        if (weighted) options.weights = all_weights().reshaped({4, 3});
        expect_close(safe_embedding_lookup(table(), all_ids().reshaped({4, 3}), options), wanted);
      }
}

TEST(SafeLookup, TakesNarrowIdsAndExamplesWithoutAny) {
  const std::vector<std::int32_t> narrow = {2, -1};
  const Array asked = Tensor::of<std::int32_t>({2}, narrow);
  expect_close(safe_embedding_lookup_sparse(table(), asked, ids({4}, {0, 0, 2, 2})),
               {0, 0, 20, 21, 0, 0});
  expect_close(safe_embedding_lookup_sparse(table(), ids({0}, {}), ids({2}, {0, 0})), {0, 0});
}

// A row that no example has must not be touched: optimizers whose slots decay would move it.
TEST(SafeLookup, NamesNoOtherRowsThanThoseThatCount) {
  Variable rows = table();
  const Array vectors = safe_embedding_lookup(rows, ids({2, 2}, {3, -1, -1, -1}));
  const auto gradients = variable_gradients(sum(vectors));
  const Tensor named = gradients.at(0).sparse.ids.eval();
  for (std::int64_t id : named.values<std::int64_t>()) EXPECT_EQ(id, 3);
  expect_close(reduce_sum(gradients[0].sparse.rows, {0}), {1, 1});
}

TEST(SafeLookup, RefusesIdsBeyondTheTableAndOtherShapes) {
  EXPECT_THROW(safe_embedding_lookup(table(), ids({1, 1}, {5})).eval(), InvalidArgumentError);
  EXPECT_THROW(safe_embedding_lookup(table(), ids({1}, {1})), InvalidArgumentError);
  EXPECT_THROW(safe_embedding_lookup(table(), floats({1, 1}, {1})), InvalidArgumentError);
  EXPECT_THROW(safe_embedding_lookup(table(), ids({1, 1}, {1}), {.weights = floats({1}, {1})}),
               InvalidArgumentError);
  EXPECT_THROW(safe_embedding_lookup(make_variable("flat", floats({2}, {1, 2})), ids({1, 1}, {1})),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
