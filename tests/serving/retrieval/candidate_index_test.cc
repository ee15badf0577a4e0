// An index finds the best candidates, exactly or approximately, and refuses bad input.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "core/base/error.h"
#include "serving/retrieval/candidate_index.h"
#include "serving/retrieval/exact_scan.h"

namespace cairn::serving {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Lists = std::vector<std::vector<std::int64_t>>;

Tensor normal_matrix(std::int64_t rows, std::int64_t width, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> draw;
  Tensor made(DType::kFloat32, {rows, width});
  for (float& value : made.mutable_values<float>()) value = draw(random);
  return made;
}

// Small whole numbers, of whose products many are equal.
Tensor coarse_matrix(std::int64_t rows, std::int64_t width, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor made(DType::kFloat32, {rows, width});
  for (float& value : made.mutable_values<float>()) value = static_cast<float>(random() % 3) - 1;
  return made;
}

Tensor numbers_up_to(std::int64_t n) {
  Tensor ids(DType::kInt64, {n});
  std::iota(ids.mutable_values<std::int64_t>().begin(), ids.mutable_values<std::int64_t>().end(),
            std::int64_t{0});
  return ids;
}

std::span<const float> row(const Tensor& matrix, std::int64_t i) {
  const auto width = static_cast<std::size_t>(matrix.shape()[1]);
  return matrix.values<float>().subspan(static_cast<std::size_t>(i) * width, width);
}

// The same by a stable sort of all products.
std::vector<ScoredPlace> sorted_best(const Tensor& vectors, std::span<const float> query,
                                     std::int64_t k, const std::vector<std::int64_t>& leave_out) {
  std::vector<ScoredPlace> all;
  for (std::int64_t i = 0; i < vectors.shape()[0]; ++i)
    if (std::ranges::count(leave_out, i) == 0)
      all.push_back({product_of(query, row(vectors, i)), i});
  std::ranges::stable_sort(all, std::greater(), &ScoredPlace::score);
  all.resize(std::min(all.size(), static_cast<std::size_t>(k)));
  return all;
}

void expect_same(const std::vector<ScoredPlace>& got, const std::vector<ScoredPlace>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].place, wanted[i].place) << "at " << i;
    ASSERT_EQ(got[i].score, wanted[i].score) << "at " << i;
  }
}

Lists random_lists(std::int64_t queries, std::int64_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Lists lists;
  for (std::int64_t q = 0; q < queries; ++q) {
    auto& list = lists.emplace_back();
    for (std::uint64_t i = random() % 20; i > 0; --i)
      list.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size)));
  }
  return lists;
}

TEST(CandidateIndex, GivesWhatAStableSortOfAllProductsGives) {
  std::uint64_t seed = 0;
  for (const std::int64_t size : {1, 15, 16, 17, 1023, 1024, 1025, 3000}) {
    for (const std::int64_t width : {1, 7, 32}) {
      SCOPED_TRACE(str("seed ", ++seed, ", ", size, " x ", width));
      for (const bool coarse : {false, true}) {
        const auto matrix = coarse ? coarse_matrix : normal_matrix;
        const Tensor vectors = matrix(size, width, seed), queries = matrix(6, width, ~seed);
        const CandidateIndex index({.ids = numbers_up_to(size), .vectors = vectors});
        const Lists lists = random_lists(6, size, seed);
        for (const std::int64_t k : {1, 10, 100}) {
          const auto got = index.top(queries, k), less = index.top(queries, k, lists);
          for (std::int64_t q = 0; q < 6; ++q) {
            const auto at = static_cast<std::size_t>(q);
            expect_same(got[at], sorted_best(vectors, row(queries, q), k, {}));
            expect_same(less[at], sorted_best(vectors, row(queries, q), k, lists[at]));
          }
        }
      }
    }
  }
}

TEST(CandidateIndex, AQuerysResultDoesNotDependOnThoseBesideIt) {
  const CandidateIndex index({.ids = numbers_up_to(2000), .vectors = normal_matrix(2000, 19, 1)});
  const Tensor queries = normal_matrix(9, 19, 2);
  const auto together = index.top(queries, 30);
  for (std::int64_t q = 0; q < 9; ++q)
    expect_same(index.top(Tensor::of<float>({1, 19}, row(queries, q)), 30).front(),
                together[static_cast<std::size_t>(q)]);
}

TEST(CandidateIndex, HasFewerWhereThereAreNoMore) {
  const CandidateIndex index({.ids = Tensor::strings({3}, std::vector<std::string>{"a", "b", "c"}),
                              .vectors = Tensor::of<float>({3, 1}, std::vector<float>{1, 3, 2})});
  const Tensor query = Tensor::of<float>({1, 1}, std::vector<float>{1});
  const auto places = [&](std::int64_t k, const Lists& lists) {
    std::vector<std::int64_t> all;
    const auto best = index.top(query, k, lists);
    for (const ScoredPlace& one : best.front()) all.push_back(one.place);
    return all;
  };
  EXPECT_THAT(places(std::numeric_limits<std::int64_t>::max(), {}), ElementsAre(1, 2, 0));
  EXPECT_THAT(places(5, {{index.find("b"), 1}}), ElementsAre(2, 0));
  EXPECT_THAT(places(1, {{2, 1, 0}}), IsEmpty());
  EXPECT_THAT(index.top(Tensor(DType::kFloat32, {0, 1}), 1), IsEmpty());
}

TEST(CandidateIndex, FindsThePlacesOfIds) {
  const Tensor vectors = normal_matrix(3, 2, 1);
  const CandidateIndex texts(
      {.ids = Tensor::strings({3}, std::vector<std::string>{"a", "", "\xC3\xA9"}),
       .vectors = vectors});
  EXPECT_EQ(texts.find("\xC3\xA9"), 2);
  EXPECT_EQ(texts.find(""), 1);
  EXPECT_EQ(texts.find("b"), -1);
  EXPECT_EQ(texts.find(1), -1);
  const CandidateIndex numbers(
      {.ids = Tensor::of<std::int64_t>({3}, std::vector<std::int64_t>{5, -7, INT64_MAX}),
       .vectors = vectors});
  EXPECT_EQ(numbers.find(-7), 1);
  EXPECT_EQ(numbers.find(INT64_MAX), 2);
  EXPECT_EQ(numbers.find(6), -1);
}

// ---- by hnswlib ----

TEST(CandidateIndex, OfHnswFindsAboutWhatItsRecallSays) {
  const std::int64_t size = 3000, width = 24;
  const Tensor vectors = normal_matrix(size, width, 5), queries = normal_matrix(400, width, 6);
  const CandidateSet set{.ids = numbers_up_to(size), .vectors = vectors, .queries = queries};
  const CandidateIndex exact(set),
      poor(set, {.kind = IndexKind::kHnsw, .links = 4, .ef_construction = 10, .ef = 10}),
      good(set, {.kind = IndexKind::kHnsw, .ef = 400});
  EXPECT_EQ(exact.recall(), 1);
  EXPECT_GT(good.recall(), 0.95);
  EXPECT_LT(poor.recall(), 0.9);
  const Tensor others = normal_matrix(1000, width, 7);
  for (const CandidateIndex* index : {&poor, &good}) {
    const auto wanted = exact.top(others, 10), got = index->top(others, 10);
    std::int64_t found = 0;
    for (std::size_t q = 0; q < wanted.size(); ++q)
      for (const ScoredPlace& one : wanted[q])
        found += std::ranges::count(got[q], one.place, &ScoredPlace::place);
    EXPECT_NEAR(static_cast<double>(found) / 10'000, index->recall(), 0.03);
  }
}

TEST(CandidateIndex, OfHnswGivesTheScoresOfTheScanAndLeavesOut) {
  const Tensor vectors = normal_matrix(500, 12, 1), queries = normal_matrix(20, 12, 2);
  const CandidateIndex index({.ids = numbers_up_to(500), .vectors = vectors},
                             {.kind = IndexKind::kHnsw, .ef = 500});
  EXPECT_EQ(index.recall(), 1) << "it looks at all of them";
  const Lists lists = random_lists(20, 500, 3);
  const auto got = index.top(queries, 10, lists);
  for (std::int64_t q = 0; q < 20; ++q)
    expect_same(got[static_cast<std::size_t>(q)],
                sorted_best(vectors, row(queries, q), 10, lists[static_cast<std::size_t>(q)]));
  EXPECT_EQ(index.top(queries, 1000).front().size(), 500u);
}

// ---- refusals ----

template <typename Call>
std::string refused(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return str(code_name(error.code()), ": ", error.what());
  }
  return "no error";
}

std::string refused_set(const CandidateSet& set) {
  return refused([&] { const CandidateIndex index(set); });
}

TEST(CandidateIndexRefuses, CandidatesThatAreNone) {
  const Tensor vectors = normal_matrix(3, 2, 1), ids = numbers_up_to(3);
  EXPECT_THAT(refused_set({}),
              HasSubstr("InvalidArgument: candidates have vectors float32 [n, d]"));
  EXPECT_THAT(refused_set({.ids = numbers_up_to(0), .vectors = Tensor(DType::kFloat32, {0, 2})}),
              HasSubstr("[n, d]"));
  EXPECT_THAT(refused_set({.ids = ids, .vectors = Tensor::zeros(DType::kFloat64, {3, 2})}),
              HasSubstr("float64[3, 2]"));
  EXPECT_THAT(refused_set({.ids = numbers_up_to(2), .vectors = vectors}), HasSubstr("int64[2]"));
  EXPECT_THAT(refused_set({.ids = Tensor::zeros(DType::kInt64, {3}), .vectors = vectors}),
              HasSubstr("the candidate 0 stands there twice"));
  Tensor odd = normal_matrix(3, 2, 1);
  odd.mutable_values<float>()[3] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(refused_set({.ids = Tensor::strings({3}, std::vector<std::string>{"a", "b", "c"}),
                           .vectors = odd}),
              HasSubstr("the vector of candidate \"b\" has a number that is not finite"));
  EXPECT_THAT(refused_set({.ids = ids, .vectors = vectors, .queries = normal_matrix(4, 3, 1)}),
              HasSubstr("float32[4, 3]"));
}

TEST(CandidateIndexRefuses, QueriesThatDoNotFit) {
  const CandidateIndex index({.ids = numbers_up_to(3), .vectors = normal_matrix(3, 2, 1)});
  const Tensor query = normal_matrix(1, 2, 2);
  const auto top = [&](const Tensor& queries, std::int64_t k, const Lists& lists = {}) {
    return refused([&] { index.top(queries, k, lists); });
  };
  EXPECT_EQ(top(query, 1), "no error");
  EXPECT_THAT(top(normal_matrix(1, 3, 2), 1),
              AllOf(HasSubstr("InvalidArgument: queries are float32 [q, 2]"), HasSubstr("[1, 3]")));
  EXPECT_THAT(top({}, 1), HasSubstr("none"));
  EXPECT_THAT(top(query, 0), HasSubstr("k is 0"));
  EXPECT_THAT(top(query, 1, {{}, {}}), HasSubstr("2 for 1 queries"));
  EXPECT_THAT(top(query, 1, {{0, 3}}), HasSubstr("the place 3, of 3 candidates"));
  EXPECT_THAT(top(query, 1, {{-1}}), HasSubstr("the place -1"));
  Tensor odd = normal_matrix(2, 2, 2);
  odd.mutable_values<float>()[2] = std::nanf("");
  EXPECT_THAT(top(odd, 1), HasSubstr("query 1 has a number that is not finite"));
}

// Finite numbers whose products are not.
TEST(CandidateIndex, ProductsBeyondFloatsAreInTheirOrder) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const CandidateIndex index(
      {.ids = numbers_up_to(3),
       .vectors = Tensor::of<float>({3, 1}, std::vector<float>{-kMost, kMost, 1})});
  const Tensor query = Tensor::of<float>({1, 1}, std::vector<float>{kMost});
  const auto best = index.top(query, 3);
  std::vector<std::int64_t> places;
  for (const ScoredPlace& one : best.front()) places.push_back(one.place);
  EXPECT_THAT(places, ElementsAre(1, 2, 0));
}

}  // namespace
}  // namespace cairn::serving
