// Two towers by the command: trained under every kind of strategy, evaluated over all candidates,
// evaluated and predicted from the model on disk.
#include "core/base/error.h"
#include "tests/tools/job_run.h"

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
      rows += str("u", user, ",", 20 + user, ",film_", film, ",", 80 + film % 3, "\n");
    }
    run_.folder.write("a.csv", rows);
    run_.folder.write(
        "job.toml",
        "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nbatch = 50\nepochs = 20\nshuffle = 500\n"
        "candidate = 'film'\n[data.csv]\nheader = true\ncolumns = ['user', "
        "'age:float32', 'film', 'length:float32']\n[features]\nvocabulary = ['user', "
        "'film']\nnumeric = ['age', 'length']\n[model]\nobjective = 'retrieval'\n"
        "query = ['user', 'age']\ncandidate = ['film', 'length']\nhidden = [16]\n"
        "[optimizer]\nkind = 'adagrad'\nlearning_rate = 0.3\n[evaluation]\nbatch = 128\n"
        "metrics = ['recall@3', 'mrr']\n");
  }

  JobRun run_;
};

TEST_P(RetrievalRun, FindsTheCandidatesOfAQuery) {
  const Json metrics = run_.trained(GetParam());
  EXPECT_GT(metrics["recall@3"], 0.9);  // by chance it is 0.1
  run_.expect_judged_as(metrics, 1e-3);
  const auto scores = run_.predicted("user,age,film,length\nu0,20,film_0,80\nu0,20,film_17,82\n");
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_THAT(scores[0], ::testing::StartsWith("score,query"));
  EXPECT_THAT(scores[0], ::testing::HasSubstr("candidate"));
  EXPECT_GT(std::stof(scores[1]), std::stof(scores[2]));
}

INSTANTIATE_TEST_SUITE_P(Under, RetrievalRun,
                         ::testing::Values("one_device", "mirrored", "central_storage",
                                           "parameter_server", "hybrid", "multi_worker_mirrored"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace cairn::tools
