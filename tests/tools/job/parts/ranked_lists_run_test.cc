// Rankings by the command: trained under every kind of strategy, evaluated list by list, evaluated
// and predicted from the model on disk.
#include <map>

#include "core/base/error.h"
#include "tests/tools/job_run.h"

namespace cairn::tools {
namespace {

class RankingRun : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  // How good an item is in its list depends on its colour alone; what a query adds to all of its
  // items says nothing, and a model of single examples would go by it.
  RankingRun() {
    std::string rows = "query,colour,noise,grade\n";
    Draws draws(11);
    for (int query = 0; query < 150; ++query) {
      const int items = 3 + query % 5;
      for (int i = 0; i < items; ++i) {
        const int colour = draws.below(6);
        rows += str("query ", query, ",c", colour, ",", query % 7, ",",
                    colour / 2 + (query % 7 > 3 ? 3 : 0), "\n");
      }
    }
    run_.folder.write("a.csv", rows);
    run_.folder.write(
        "job.toml",
        str("[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nbatch = 48\nepochs = 12\n"
            "group = 'query'\n[data.csv]\nheader = true\ncolumns = ['query', 'colour', "
            "'noise:float32', 'grade:float32']\nlabel = {column = 'grade'}\n[features]\n"
            "vocabulary = ['colour']\nhashed = {query = 40}\nnumeric = "
            "'noise'\n[model]\nkind = 'deep'\n"
            "hidden = []\nobjective = 'ranking'\nloss = '",
            std::get<1>(GetParam()),
            "'\n[optimizer]\nkind = 'adagrad'\nlearning_rate = 0.5\n[evaluation]\n"
            "batch = 50\n"));
  }

  JobRun run_;
};

TEST_P(RankingRun, LearnsTheOrderOfEachList) {
  const Json metrics = run_.trained(std::get<0>(GetParam()));
  EXPECT_GT(metrics["ndcg@10"], 0.99);
  EXPECT_GT(metrics["grouped_auc"], 0.99);
  run_.expect_judged_as(metrics, 1e-5);
  const auto scores = run_.predicted("query,colour,noise\nq,c5,3\nq,c0,3\n");
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_EQ(scores[0], "score");
  EXPECT_GT(std::stof(scores[1]), std::stof(scores[2]));
}

INSTANTIATE_TEST_SUITE_P(
    Under, RankingRun,
    ::testing::Values(std::tuple("one_device", "softmax"), std::tuple("one_device", "bpr"),
                      std::tuple("mirrored", "softmax"), std::tuple("central_storage", "bpr"),
                      std::tuple("parameter_server", "softmax"), std::tuple("hybrid", "bpr"),
                      std::tuple("multi_worker_mirrored", "softmax")),
    [](const auto& kind) { return str(std::get<0>(kind.param), "_", std::get<1>(kind.param)); });

// A binary model that knows from the query alone how likely a click is, and from the colour which
// of a query's items is clicked.
class GroupedMetrics : public ::testing::TestWithParam<const char*> {
 protected:
  GroupedMetrics() {
    Draws draws(7);
    for (int i = 0; i < 600; ++i) {
      const int random = draws.below(1000);
      const int query = i % 40, colour = random % 6;
      const bool clicked = (random / 6) % 60 < 8 * colour + (query % 2 == 0 ? 20 : 0);
      rows_ += str("q", query, ",c", colour, ",", clicked ? 1 : 0, "\n");
      truth_.emplace_back(query, clicked);
    }
    run_.folder.write("a.csv", rows_);
    run_.folder.write(
        "job.toml",
        "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nbatch = 48\nepochs = 6\ngroup = 'query'\n"
        "[data.csv]\ncolumns = ['query', 'colour', 'click:float32']\n"
        "label = {column = 'click'}\n[features]\nvocabulary = ['colour']\n"
        "hashed = {query = 40}\n[model]\nkind = 'deep'\nhidden = []\n"
        "[evaluation]\nbatch = 50\nmetrics = ['auc', 'grouped_auc', 'logloss', 'ndcg@3']\n");
  }

  // The share of the pairs that are in the right order, of equal scores one half, on average over
  // the queries with both kinds of items.
  double grouped_auc(const std::vector<std::string>& predicted) const {
    std::map<int, std::vector<std::pair<double, bool>>> lists;
    for (std::size_t i = 0; i < truth_.size(); ++i)
      lists[truth_[i].first].emplace_back(std::stod(predicted[i + 1]), truth_[i].second);
    double sum = 0, counted = 0;
    for (const auto& [query, items] : lists) {
      double right = 0, pairs = 0;
      for (const auto& [high, clicked] : items)
        for (const auto& [low, other] : items)
          if (clicked && !other) {
            right += high > low ? 1 : high == low ? 0.5 : 0;
            ++pairs;
          }
      if (pairs == 0) continue;
      sum += right / pairs;
      ++counted;
    }
    return sum / counted;
  }

  JobRun run_;
  std::string rows_;
  std::vector<std::pair<int, bool>> truth_;  // by row: the query, and whether it was clicked
};

TEST_P(GroupedMetrics, OfABinaryModelAreThoseOfItsLists) {
  const Json metrics = run_.trained(GetParam());
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics.items()) names.push_back(name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("auc", "grouped_auc", "logloss", "ndcg@3"));
  run_.expect_judged_as(metrics, 1e-5);
  const double expected = grouped_auc(run_.predicted(rows_));
  EXPECT_GT(expected, 0.6);
  EXPECT_NEAR(metrics["grouped_auc"].get<double>(), expected, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Under, GroupedMetrics,
                         ::testing::Values("one_device", "mirrored", "parameter_server"));

}  // namespace
}  // namespace cairn::tools
