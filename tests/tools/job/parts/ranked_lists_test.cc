// Lists of examples side by side, and what metrics of lists say of their scores.
#include "tools/job/parts/ranked_lists.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"
#include "nn/metrics/ranking_metrics.h"

namespace cairn::tools {
namespace {

std::vector<std::unique_ptr<nn::Metric>> all_metrics() {
  std::vector<std::unique_ptr<nn::Metric>> all;
  all.push_back(std::make_unique<nn::Ndcg>());
  all.push_back(std::make_unique<nn::GroupedAuc>());
  all.push_back(std::make_unique<nn::RecallAtK>(nn::TopOptions{.k = 1}));
  return all;
}

std::string lists_error(const std::function<void(RankedLists&)>& work) {
  RankedLists lists("data.test");
  try {
    work(lists);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "it was taken";
}

// Lists {0, 2, 4} with relevance 1, 0, 0, and {1, 3} with 0, 1; one example is alone.
RankedLists three_lists() {
  RankedLists lists("data.test");
  lists.add(std::vector<std::int64_t>{7, 5, 7}, std::vector<float>{1, 0, 0});
  lists.add(std::vector<std::int64_t>{5, 7, 9}, std::vector<float>{1, 0, 1});
  lists.finish();
  return lists;
}

TEST(RankedLists, AreJudgedWhereverTheirExamplesLie) {
  const RankedLists lists = three_lists();
  EXPECT_EQ(lists.examples(), 6);
  EXPECT_EQ(lists.lists(), 3);
  // The first list's relevant example is second, the second list's first.
  const auto evaluated = lists.evaluate(std::vector<float>{0.5f, 0, 1, 2, 0, 0}, all_metrics());
  EXPECT_EQ(evaluated[0].first, "ndcg");
  EXPECT_NEAR(evaluated[0].second, (1 / std::log2(3.0) + 1 + 1) / 3, 1e-6);
  EXPECT_NEAR(evaluated[1].second, (0.5 + 1) / 2, 1e-6);  // of one class, the third does not count
  EXPECT_NEAR(evaluated[2].second, (0.0 + 1 + 1) / 3, 1e-6);
}

TEST(RankedLists, EachJudgementBeginsAnew) {
  const RankedLists lists = three_lists();
  const auto metrics = all_metrics();
  lists.evaluate(std::vector<float>{0, 1, 1, 0, 1, 0}, metrics);
  EXPECT_NEAR(lists.evaluate(std::vector<float>{1, 0, 0, 1, 0, 1}, metrics)[1].second, 1, 1e-6);
}

TEST(RankedLists, AListHasTheMeanWeightOfItsExamples) {
  RankedLists lists("data.test");
  lists.add(std::vector<std::int64_t>{1, 1, 2, 2}, std::vector<float>{1, 0, 1, 0},
            std::vector<float>{2, 4, 1, 1});
  lists.finish();
  const auto evaluated = lists.evaluate(std::vector<float>{1, 0, 0, 1}, all_metrics());
  EXPECT_NEAR(evaluated[1].second, 3.0 / 4, 1e-6);
}

TEST(RankedLists, ManyListsAreJudgedInParts) {
  RankedLists lists("data.test");
  std::vector<float> scores;
  for (std::int64_t list = 0; list < 40; ++list) {
    const std::int64_t rows = list % 2 == 0 ? 3 : 1000;
    for (std::int64_t i = 0; i < rows; ++i) {
      lists.add(std::vector{list}, std::vector{i == 0 ? 1.0f : 0.0f});
      scores.push_back(list % 4 < 2 ? static_cast<float>(-i) : static_cast<float>(i));
    }
  }
  lists.finish();
  EXPECT_NEAR(lists.evaluate(scores, all_metrics())[1].second, 0.5, 1e-6);
}

TEST(RankedLists, LabelsAndLengthsThatCannotBeJudgedAreNamed) {
  EXPECT_THAT(lists_error([](RankedLists& lists) {
                lists.add(std::vector<std::int64_t>{1, 1}, std::vector<float>{0, -1});
              }),
              ::testing::HasSubstr("data.test: example 2 has the label -1"));
  EXPECT_THAT(lists_error([](RankedLists& lists) {
                const std::vector<std::int64_t> one(RankedLists::kRowsMax + 1, 1);
                lists.add(std::vector<std::int64_t>{0}, std::vector<float>{0});
                lists.add(one, std::vector<float>(one.size(), 0));
                lists.finish();
              }),
              ::testing::HasSubstr("data.test: example 2 begins a list of 4097 rows"));
}

}  // namespace
}  // namespace cairn::tools
