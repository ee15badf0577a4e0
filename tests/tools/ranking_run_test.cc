// Rankings by the command: trained under every kind of strategy, judged list by list, evaluated and
// predicted from the model on disk.
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
    std::uint64_t state = 11;
    for (int query = 0; query < 150; ++query) {
      const int items = 3 + query % 5;
      for (int i = 0; i < items; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int colour = static_cast<int>((state >> 40) % 6);
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

}  // namespace
}  // namespace cairn::tools
