// Two towers by the command: trained under every kind of strategy, judged over all candidates,
// evaluated and predicted from the model on disk.
#include <gmock/gmock.h>

#include <sstream>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/child_process.h"

namespace cairn::tools {
namespace {

class RetrievalRun : public ::testing::TestWithParam<const char*> {
 protected:
  // Users of a taste see films of it: of 30 films, three belong to each taste.
  RetrievalRun() {
    std::string rows = "user,age,film,length\n";
    std::uint64_t state = 5;
    for (int i = 0; i < 1500; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const int user = static_cast<int>((state >> 40) % 40), taste = user % 10;
      const int film = taste * 3 + static_cast<int>((state >> 50) % 3);
      rows += str("u", user, ",", 20 + user, ",film ", film, ",", 80 + film % 3, "\n");
    }
    folder_.write("a.csv", rows);
    folder_.write(
        "job.toml",
        "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nbatch = 50\nepochs = 20\nshuffle = 500\n"
        "candidate = 'film'\n[data.csv]\nheader = true\ncolumns = ['user', "
        "'age:float32', 'film', 'length:float32']\n[features]\nvocabulary = ['user', "
        "'film']\nnumeric = ['age', 'length']\n[model]\nobjective = 'retrieval'\n"
        "query = ['user', 'age']\ncandidate = ['film', 'length']\nhidden = [16]\n"
        "[optimizer]\nkind = 'adagrad'\nlearning_rate = 0.3\n[evaluation]\nbatch = 128\n"
        "metrics = ['recall@3', 'mrr']\n");
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

TEST_P(RetrievalRun, FindsTheCandidatesOfAQuery) {
  ASSERT_EQ(cairn({"train", path("job.toml"), "--strategy", GetParam(), "--dir", path("run"),
                   "--report", path("report")}),
            0)
      << output();
  const Json report = parse_json(folder_.read("report"), "the report");
  EXPECT_GT(report["metrics"]["recall@3"], 0.9) << output();  // by chance it is 0.1

  folder_.write("output", "");
  ASSERT_EQ(cairn({"evaluate", path("run"), "--data", path("a.csv"), "--json"}), 0) << output();
  const Json judged = parse_json(output(), "the evaluation");
  for (const auto& [name, value] : judged["metrics"].items())
    EXPECT_NEAR(value.get<double>(), report["metrics"][name].get<double>(), 1e-3) << name;

  folder_.write("new.csv", "user,age,film,length\nu0,20,film 0,80\nu0,20,film 17,82\n");
  ASSERT_EQ(cairn({"predict", path("run"), "--data", path("new.csv"), "--out", path("scores.csv")}),
            0)
      << output();
  std::istringstream scores(folder_.read("scores.csv"));
  std::string header, first, second;
  scores >> header >> first >> second;
  EXPECT_THAT(header, ::testing::StartsWith("score,query"));
  EXPECT_THAT(header, ::testing::HasSubstr("candidate"));
  EXPECT_GT(std::stof(first), std::stof(second));
}

INSTANTIATE_TEST_SUITE_P(Under, RetrievalRun,
                         ::testing::Values("one_device", "mirrored", "central_storage",
                                           "parameter_server", "hybrid", "multi_worker_mirrored"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace cairn::tools
