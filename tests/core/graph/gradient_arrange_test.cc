// The gradients of core/graph/ops_arrange.h against differences, and those of the gradients.
#include <gtest/gtest.h>

#include "tests/core/graph/numeric_gradient.h"
#include "tests/core/graph_testing.h"

namespace cairn {

using namespace testing;  // NOLINT
using Arrays = std::vector<Array>;

std::vector<GradientCase> testing::arrange_cases() {
  const Tensor x = values({3, 4}, 51), cube = values({2, 3, 2}, 52), rows = values({5, 2}, 53),
               splits = ids_of({0, 3, 3, 5});
  const Tensor picks =
      Tensor::of<std::int64_t>({3, 2}, std::vector<std::int64_t>{3, 3, 0, 2, 1, 1});
  const Tensor down =
      Tensor::of<std::int32_t>({2, 4}, std::vector<std::int32_t>{2, 2, 0, 1, 1, 2, 2, 0});
  std::vector<GradientCase> all = {
      {"top_k", [](const Arrays& in) { return top_k(in[0], 2).values; }, {x}},
      {"top_k",
       [](const Arrays& in) { return top_k(in[0], 2).values * top_k(in[0], 2).values; },
       {cube}},
      {"gather_along", [](const Arrays& in) { return gather_along(in[0], in[1], 1); }, {x, picks}},
      {"gather_along_grad",
       [](const Arrays& in) { return gather_along_grad(in[0], in[2], in[1], -1); },
       {values({3, 2}, 54), x, picks}},
      {"gather_along",
       [](const Arrays& in) { return gather_along(in[0], expand_dims(in[1], 2), 1); },
       {values({2, 3, 1}, 55), down}},
      {"clip_by_value",
       [](const Arrays& in) { return clip_by_value(in[0], -0.9f, in[1]); },
       {x, values({4}, 56, 0.9f, 1.3f)}},
      {"tile",
       [](const Arrays& in) {
         return tile(in[0], {2, 2});
       },
       {x}},
      {"repeat_elements", [](const Arrays& in) { return repeat_elements(in[0], 3, 0); }, {x}},
      {"reverse", [](const Arrays& in) { return reverse(in[0], 0) * in[0]; }, {x}},
      {"pad",
       [](const Arrays& in) {
         return pad(in[0], {{1, 2}, {-1, 3}}, 2);
       },
       {x}},
      {"pad",
       [](const Arrays& in) {
         return pad(square(in[0]), {{-1, -1}, {2, -4}}, 0.5f);
       },
       {x}},
      {"to_dense_grad",
       [](const Arrays& in) { return to_dense_grad(in[0], in[2], in[1], 2); },
       {values({3, 2, 2}, 57), rows, splits}}};
  for (std::int64_t columns : {0, 2, 4})
    all.push_back({"to_dense",
                   [=](const Arrays& in) { return to_dense(in[0], in[1], columns, 0.5f); },
                   {rows, splits}});
  for (int axis : {0, 1, 2})
    for (bool exclusive : {false, true})
      for (bool reverse : {false, true})
        all.push_back({"cumsum",
                       [=](const Arrays& in) {
                         return cumsum(in[0], axis, {.exclusive = exclusive, .reverse = reverse});
                       },
                       {cube}});
  return all;
}

TEST(NumericGradient, OfWhatOrdersPicksAndPads) { check_gradients(arrange_cases()); }

}  // namespace cairn
