// Rankings by the command: trained under every kind of strategy, judged list by list, evaluated and
// predicted from the model on disk.
#include <gmock/gmock.h>

#include <sstream>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/child_process.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;

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
    folder_.write("a.csv", rows);
    folder_.write("job.toml",
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
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string output() const { return folder_.read("output"); }
  int cairn(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CAIRN_PROGRAM);
    ChildProcess child({.arguments = arguments, .output_file = path("output")});
    return end_in_time(child, 120'000, output()).code;
  }

  TempFolder folder_;
};

TEST_P(RankingRun, LearnsTheOrderOfEachList) {
  ASSERT_EQ(cairn({"train", path("job.toml"), "--strategy", std::get<0>(GetParam()), "--dir",
                   path("run"), "--report", path("report")}),
            0)
      << output();
  const Json report = parse_json(folder_.read("report"), "the report");
  EXPECT_GT(report["metrics"]["ndcg@10"], 0.99) << output();
  EXPECT_GT(report["metrics"]["grouped_auc"], 0.99);

  folder_.write("output", "");
  ASSERT_EQ(cairn({"evaluate", path("run"), "--data", path("a.csv"), "--json"}), 0) << output();
  const Json judged = parse_json(output(), "the evaluation");
  for (const auto& [name, value] : judged["metrics"].items())
    EXPECT_NEAR(value.get<double>(), report["metrics"][name].get<double>(), 1e-5) << name;

  folder_.write("new.csv", "query,colour,noise\nq,c5,3\nq,c0,3\n");
  ASSERT_EQ(cairn({"predict", path("run"), "--data", path("new.csv"), "--out", path("scores.csv")}),
            0)
      << output();
  std::istringstream scores(folder_.read("scores.csv"));
  std::string header, first, second;
  scores >> header >> first >> second;
  EXPECT_EQ(header, "score");
  EXPECT_GT(std::stof(first), std::stof(second));
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
