#include "tests/core/arrange_checks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "core/exec/executor.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Arrays = std::vector<Array>;
using Int = std::int64_t;
using Ints = std::vector<Int>;
using Body = std::function<Arrays(const Arrays&)>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Runs functions on a device, twice: the second time with leading dimensions unknown when traced.
class Runs {
 public:
  explicit Runs(Device& device) : device_(device) {}

  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const Body& body) const {
    std::vector<Tensor> known = run(inputs, body, true), unknown = run(inputs, body, false);
    for (std::size_t i = 0; i < known.size(); ++i) expect_same(known[i], unknown[i]);
    return known;
  }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const Body& body, bool known) const {
    std::vector<SignatureEntry> signature;
    for (const Tensor& input : inputs) {
      TensorType type = input.type();
      if (!known && type.shape.rank() > 0) type.shape = type.shape.with_dim(0, kAny);
      signature.emplace_back(type);
    }
    const ConcreteFunction traced = trace_function(signature, [&](const auto& in) {
      Arrays arrays;
      for (const auto& one : in) arrays.push_back(std::get<Array>(one));
      return body(arrays);
    });
    Workspace workspace(device_);
    LocalStore store;
    return cairn::run(make_plan(parse_graph(traced.bytes), {}), workspace, store, {}, inputs, {});
  }

 private:
  static void expect_same(const Tensor& a, const Tensor& b) {
    ASSERT_EQ(a.type(), b.type());
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(a.raw()), a.bytes()),
              std::string_view(reinterpret_cast<const char*>(b.raw()), b.bytes()));
  }
  Device& device_;
};

template <typename T>
Tensor of(Shape shape, const std::vector<T>& values) {
  return Tensor::of<T>(std::move(shape), values);
}
Tensor bools(const std::vector<int>& bits, Shape shape) {
  Tensor made(DType::kBool, std::move(shape));
  for (std::size_t i = 0; i < bits.size(); ++i) made.mutable_values<bool>()[i] = bits[i] != 0;
  return made;
}

void check_top_k(const Runs& runs) {
  const auto largest = [&](const Tensor& x, Int k) {
    return runs.run({x}, [k](const Arrays& in) {
      const TopK found = top_k(in[0], k);
      return Arrays{found.values, found.indices};
    });
  };
  auto of_floats = largest(
      of<float>({3, 5}, {1, 3, 2, 3, -1, -0.0f, 0, kNan, -kInfinity, 0, kNan, kNan, 1, kNan, 2}),
      4);
  EXPECT_EQ(of_floats[0].shape(), (Shape{3, 4}));
  EXPECT_THAT(of_floats[1].values<Int>(), ElementsAre(1, 3, 2, 0, 0, 1, 4, 3, 4, 2, 0, 1));
  EXPECT_THAT(of_floats[0].values<float>().subspan(0, 8),
              ElementsAre(3, 3, 2, 1, 0, 0, 0, -kInfinity));
  EXPECT_TRUE(std::isnan(of_floats[0].values<float>()[11]));
  constexpr Int kLeast = std::numeric_limits<Int>::min(), kMost = std::numeric_limits<Int>::max();
  auto of_wide = largest(of<Int>({1, 4}, {kLeast, kMost, -1, kMost}), 4);
  EXPECT_THAT(of_wide[0].values<Int>(), ElementsAre(kMost, kMost, -1, kLeast));
  EXPECT_THAT(of_wide[1].values<Int>(), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(largest(of<std::int32_t>({4}, {-5, 7, 7, 0}), 2)[1].values<Int>(), ElementsAre(1, 2));
  EXPECT_EQ(largest(of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), 0)[0].shape(), (Shape{2, 0}));
}

// Many elements of few values, so that most of them have equals, against a stable sort.
void check_top_k_of_many(const Runs& runs) {
  constexpr Int kRows = 3, kN = 700, kK = 40;
  Random random(7);
  std::vector<float> x(kRows * kN);
  for (float& one : x) one = static_cast<float>(random.below(50)) - 20;
  auto found = runs.run({of<float>({kRows, kN}, x)}, [](const Arrays& in) {
    const TopK most = top_k(in[0], kK);
    return Arrays{most.values, most.indices};
  });
  for (Int r = 0; r < kRows; ++r) {
    const float* const row = x.data() + r * kN;
    Ints order(kN);
    for (Int i = 0; i < kN; ++i) order[static_cast<std::size_t>(i)] = i;
    std::stable_sort(order.begin(), order.end(), [row](Int a, Int b) { return row[a] > row[b]; });
    order.resize(kK);
    EXPECT_THAT(found[1].values<Int>().subspan(static_cast<std::size_t>(r * kK), kK),
                ElementsAreArray(order));
  }
}

void check_in_top_k(const Runs& runs) {
  const Tensor predictions = of<float>(
      {6, 3}, {.1f, .7f, .2f, .1f, .7f, .2f, .5f, .5f, .5f, 1, kInfinity, 0, 1, 2, 3, 1, 2, 3});
  const Tensor targets = of<std::int32_t>({6}, {1, 0, 2, 0, 3, -1});
  const auto hits = [&](Int k) {
    auto made = runs.run({predictions, targets},
                         [k](const Arrays& in) { return Arrays{in_top_k(in[0], in[1], k)}; });
    return std::vector<bool>(made[0].values<bool>().begin(), made[0].values<bool>().end());
  };
  EXPECT_THAT(hits(1), ElementsAre(true, false, true, false, false, false));
  EXPECT_THAT(hits(2), ElementsAre(true, false, true, false, false, false));
  EXPECT_THAT(hits(3), ElementsAre(true, true, true, false, false, false));
  EXPECT_THAT(hits(0), ElementsAre(false, false, false, false, false, false));
}

// The sum at each place, element by element.
std::vector<double> sums_of(const Tensor& x, int axis, const CumsumOptions& options) {
  Int inner = 1;
  for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.shape()[i];
  std::vector<double> sums;
  for (Int at = 0; at < x.elements(); ++at) {
    const Int place = at / inner % x.shape()[axis];
    double sum = 0;
    for (Int i = 0; i < x.shape()[axis]; ++i) {
      const bool counts = i == place ? !options.exclusive : (i < place) != options.reverse;
      if (counts) sum += x.values<float>()[static_cast<std::size_t>(at + (i - place) * inner)];
    }
    sums.push_back(sum);
  }
  return sums;
}

void check_cumsum(const Runs& runs) {
  std::vector<float> numbers(2 * 3 * 4);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i * i % 17) - 5.25f;
  const Tensor x = of<float>({2, 3, 4}, numbers);
  for (int axis : {0, 1, 2})
    for (CumsumOptions options : {CumsumOptions{}, {true, false}, {false, true}, {true, true}}) {
      auto made =
          runs.run({x}, [&](const Arrays& in) { return Arrays{cumsum(in[0], axis - 3, options)}; });
      const std::vector<double> want = sums_of(x, axis, options);
      EXPECT_THAT(made[0].values<float>(), ElementsAreArray(want.begin(), want.end()));
    }
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  auto wrapped = runs.run({of<std::int32_t>({2}, {kMost, 1})},
                          [](const Arrays& in) { return Arrays{cumsum(in[0], 0)}; });
  EXPECT_THAT(wrapped[0].values<std::int32_t>(),
              ElementsAre(kMost, std::numeric_limits<std::int32_t>::min()));
  // Added in float, each 1 behind 2^24 would be lost.
  auto small = runs.run({of<float>({4}, {16777216, 1, 1, 2})},
                        [](const Arrays& in) { return Arrays{cumsum(in[0], 0)}; });
  EXPECT_EQ(small[0].values<float>()[3], 16777220.0f);
}

void check_bounds_and_truth(const Runs& runs) {
  auto made = runs.run({of<float>({5}, {-3, -1, 0.5f, 2, 9}), bools({1, 0, 0, 0}, {2, 2}),
                        bools({1, 1, 0, 0}, {2, 2}), bools({}, {0, 2}),
                        of<std::int32_t>({3}, {4, std::numeric_limits<std::int32_t>::min(), 7})},
                       [](const Arrays& in) {
                         return Arrays{clip_by_value(in[0], -1.0f, 2.0f),
                                       logical_xor(in[1], in[2]),
                                       reduce_any(in[1], {1}),
                                       reduce_all(in[2], {1}),
                                       reduce_any(in[3], {0}),
                                       reduce_all(in[3], {0}),
                                       argmin(in[4], 0),
                                       argmin(in[0], 0)};
                       });
  EXPECT_THAT(made[0].values<float>(), ElementsAre(-1, -1, 0.5f, 2, 2));
  EXPECT_THAT(made[1].values<bool>(), ElementsAre(false, true, false, false));
  EXPECT_THAT(made[2].values<bool>(), ElementsAre(true, false));
  EXPECT_THAT(made[3].values<bool>(), ElementsAre(true, false));
  EXPECT_THAT(made[4].values<bool>(), ElementsAre(false, false));
  EXPECT_THAT(made[5].values<bool>(), ElementsAre(true, true));
  EXPECT_EQ(made[6].item<Int>(), 1);
  EXPECT_EQ(made[7].item<Int>(), 0);
}

void check_padding(const Runs& runs) {
  const Tensor x = of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor flags = bools({1, 0, 1}, {3}), wide = of<Int>({3}, {7, 8, 9});
  auto made = runs.run({x, flags, wide}, [](const Arrays& in) {
    return Arrays{pad(in[0], {{1, 0}, {-1, 2}}, 9), pad(in[1], {{2, -1}}, true),
                  pad(in[2], {{-2, 3}}, -1),        pad(in[2], {{-3, 0}}, 0),
                  pad(in[2], {{-2, -1}}, 0),        pad(in[2], {{-5, 4}}, 1)};
  });
  EXPECT_EQ(made[0].shape(), (Shape{3, 4}));
  EXPECT_THAT(made[0].values<float>(), ElementsAre(9, 9, 9, 9, 2, 3, 9, 9, 5, 6, 9, 9));
  EXPECT_THAT(made[1].values<bool>(), ElementsAre(true, true, true, false));
  EXPECT_THAT(made[2].values<Int>(), ElementsAre(9, -1, -1, -1));
  EXPECT_EQ(made[3].shape(), (Shape{0}));
  EXPECT_EQ(made[4].shape(), (Shape{0}));
  EXPECT_THAT(made[5].values<Int>(), ElementsAre(1, 1));
}

void check_repeating(const Runs& runs) {
  const Tensor x = of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), none = of<float>({0, 3}, {});
  auto made = runs.run({x, none}, [](const Arrays& in) {
    return Arrays{tile(in[0], {2, 1}),
                  tile(in[0], {1, 2}),
                  tile(in[0], {0, 1}),
                  repeat_elements(in[0], 2, 0),
                  repeat_elements(in[0], 2, -1),
                  reverse(in[0], 0),
                  reverse(in[0], 1),
                  reverse(in[1], 0),
                  positions_along(in[0], 0),
                  range(4)};
  });
  EXPECT_THAT(made[0].values<float>(), ElementsAre(1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(made[1].values<float>(), ElementsAre(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
  EXPECT_EQ(made[2].shape(), (Shape{0, 3}));
  EXPECT_THAT(made[3].values<float>(), ElementsAre(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
  EXPECT_THAT(made[4].values<float>(), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6));
  EXPECT_THAT(made[5].values<float>(), ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(made[6].values<float>(), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_EQ(made[7].shape(), (Shape{0, 3}));
  EXPECT_THAT(made[8].values<Int>(), ElementsAre(0, 1));
  EXPECT_THAT(made[9].values<Int>(), ElementsAre(0, 1, 2, 3));
}

void check_gather_along(const Runs& runs) {
  const Tensor x = of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), ids = of<Int>({2, 2}, {2, 2, 0, 1});
  const Tensor down = of<std::int32_t>({1, 3}, {1, 0, 1}), flags = bools({1, 0, 0, 1}, {2, 2});
  auto made = runs.run({x, ids, down, flags}, [](const Arrays& in) {
    const Array picked = gather_along(in[0], in[1], 1);
    return Arrays{picked, grad(sum(square(picked)), {in[0]})[0],
                  gather_along(in[3], floor_mod(in[1], 2), 0),
                  gather_along(in[1], in[1] - in[1], 1)};
  });
  EXPECT_THAT(made[0].values<float>(), ElementsAre(3, 3, 4, 5));
  EXPECT_THAT(made[1].values<float>(), ElementsAre(0, 0, 12, 8, 10, 0));
  EXPECT_THAT(made[2].values<bool>(), ElementsAre(true, false, true, true));
  EXPECT_THAT(made[3].values<Int>(), ElementsAre(2, 2, 0, 0));
  auto first = runs.run({x, down}, [](const Arrays& in) {
    return Arrays{gather_along(transpose(in[0], {1, 0}), reshape(in[1], {3, 1}), 1)};
  });
  EXPECT_THAT(first[0].values<float>(), ElementsAre(4, 2, 6));
  for (Int wrong : {Int{3}, Int{-1}})
    for (bool backward : {false, true})
      EXPECT_THAT(
          message_of([&] {
            runs.run(
                {x, of<Int>({2, 1}, {0, wrong})},
                [&](const Arrays& in) {
                  if (backward)
                    return Arrays{gather_along_grad(in[0], tile(in[1], {1, 3}), in[0], 1)};
                  return Arrays{gather_along(in[0], in[1], 1)};
                },
                true);
          }),
          HasSubstr(str("id ", wrong, " at position ", backward ? 3 : 1, " is outside [0, 3)")));
}

void check_to_dense(const Runs& runs) {
  const Tensor rows = of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), ids = of<Int>({4}, {9, 8, 7, 6});
  const Tensor splits = ids_of({0, 3, 3, 4}), none = ids_of({0});
  auto made = runs.run({rows, ids, splits, none}, [](const Arrays& in) {
    const Array dense = to_dense(in[0], in[2], 2, -1.0f);
    return Arrays{dense,
                  to_dense(in[1], in[2], 3, -1),
                  grad(sum(square(dense)), {in[0]})[0],
                  row_lengths(in[2]),
                  row_mask(in[2], 2),
                  to_dense(pad(in[1], {{0, -4}}, 0), in[3], 3, 0),
                  to_dense(in[1], in[2], 0, 0)};
  });
  EXPECT_EQ(made[0].shape(), (Shape{3, 2, 2}));
  EXPECT_THAT(made[0].values<float>(), ElementsAre(1, 2, 3, 4, -1, -1, -1, -1, 7, 8, -1, -1));
  EXPECT_THAT(made[1].values<Int>(), ElementsAre(9, 8, 7, -1, -1, -1, 6, -1, -1));
  EXPECT_THAT(made[2].values<float>(), ElementsAre(2, 4, 6, 8, 0, 0, 14, 16));
  EXPECT_THAT(made[3].values<Int>(), ElementsAre(3, 0, 1));
  EXPECT_THAT(made[4].values<bool>(), ElementsAre(true, true, false, false, true, false));
  EXPECT_EQ(made[5].shape(), (Shape{0, 3}));
  EXPECT_EQ(made[6].shape(), (Shape{3, 0}));
  for (const Ints& wrong :
       {Ints{0, 3, 2, 4}, Ints{1, 3, 3, 4}, Ints{0, 3, 3, 3}, Ints{0, -1, 9, 4}})
    EXPECT_THAT(message_of([&] {
                  runs.run(
                      {rows, ids_of(wrong)},
                      [](const Arrays& in) { return Arrays{to_dense(in[0], in[1], 2, 0)}; }, true);
                }),
                HasSubstr("row_splits"));
}

}  // namespace

void check_arrange_ops(Device& device) {
  const Runs runs(device);
  check_top_k(runs);
  check_top_k_of_many(runs);
  check_in_top_k(runs);
  check_cumsum(runs);
  check_bounds_and_truth(runs);
  check_padding(runs);
  check_repeating(runs);
  check_gather_along(runs);
  check_to_dense(runs);
}

}  // namespace cairn::testing
