// model.objective = "ranking": what a job has to say for it, and which data it is refused.
#include <gmock/gmock.h>

#include "data/dataset/dataset_iterator.h"
#include "tests/tools/job_fixture.h"
#include "tools/job/parts/job_lists.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_metrics.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobRanking : public JobFixture {
 protected:
  JobRanking() { write("q,a,1\nq,b,0\nr,a,0\nr,b,2\n"); }
  void write(const std::string& rows) const { folder_.write("a.csv", rows); }
  static std::string text(const std::string& of_data = "group = 'query'\n",
                          const std::string& of_model = "objective = 'ranking'\n",
                          const std::string& rest = "") {
    return "[data]\ntrain = 'a.csv'\n" + of_data +
           "[data.csv]\ncolumns = ['query', 'item', 'clicks:float32']\n"
           "label = {column = 'clicks'}\n[features]\nvocabulary = ['item']\n[model]\n" +
           of_model + rest;
  }
  std::string error_of(const std::string& text) const {
    return raised_by([&] {
      const Job read = job(text);
      verify_training_lists(read, fit_features(read));
    });
  }
};

TEST_F(JobRanking, HasAGroupALossAndMetricsOfLists) {
  const Job read = job(text());
  EXPECT_EQ(read.data.group, "query");
  EXPECT_EQ(read.model.loss, "softmax");
  EXPECT_THAT(eval_metrics(read),
              ElementsAre("ndcg@10", "grouped_auc", "hit_rate@10", "recall@10"));
  EXPECT_EQ(error_of(text()), "it was taken");
  EXPECT_EQ(error_of(text("group = 'query'\n", "objective = 'ranking'\nloss = 'bpr'\n",
                          "[evaluation]\nmetrics = ['mrr', 'ndcg@3', 'hit_rate@1']\n")),
            "it was taken");
}

TEST_F(JobRanking, WhatItCannotMeanIsNamedWithItsLine) {
  EXPECT_THAT(error_of(text("")), AllOf(HasSubstr("some.toml:9: model.objective"),
                                        HasSubstr("name with data.group the column")));
  EXPECT_THAT(error_of(text("group = 'query'\n", "")),
              AllOf(HasSubstr("some.toml:3: data.group"), HasSubstr("is of model.objective")));
  EXPECT_THAT(error_of(text("group = 'quary'\n")), HasSubstr("did you mean \"query\"?"));
  EXPECT_THAT(error_of(text("group = 'clicks'\n")), HasSubstr("which is the label"));
  EXPECT_THAT(error_of(text("group = 'query'\nshuffle = 10\n")),
              AllOf(HasSubstr("some.toml:4: data.shuffle"), HasSubstr("beside those of their")));
  EXPECT_THAT(error_of(text("group = 'query'\n", "objective = 'ranking'\nloss = 'mse'\n")),
              AllOf(HasSubstr("model.loss"), HasSubstr("softmax")));
  for (const char* metric : {"ndcg@0", "auc", "ndcg@x", "recall@5000000000", "grouped_auc@3"})
    EXPECT_THAT(error_of(text("group = 'query'\n", "objective = 'ranking'\n",
                              str("[evaluation]\nmetrics = ['", metric, "']\n"))),
                HasSubstr("evaluation.metrics"))
        << metric;
}

TEST_F(JobRanking, ABinaryModelHasListsForItsMetricsAlone) {
  const std::string binary = "objective = 'binary'\n",
                    metrics = "[evaluation]\nmetrics = ['auc', 'grouped_auc']\n";
  write("q,a,1\nr,a,0\nq,b,0\nr,b,1\n");  // rows of a list may lie apart
  EXPECT_EQ(error_of(text("group = 'query'\nshuffle = 10\n", binary, metrics)), "it was taken");
  EXPECT_THAT(error_of(text("", binary, metrics)),
              AllOf(HasSubstr("some.toml:11: evaluation.metrics names \"grouped_auc\""),
                    HasSubstr("name with data.group the column")));
  EXPECT_THAT(error_of(text("group = 'query'\n", binary, "[evaluation]\nmetrics = ['auc']\n")),
              AllOf(HasSubstr("some.toml:3: data.group"), HasSubstr("name \"grouped_auc\" in")));
  EXPECT_THAT(error_of(text("group = 'clicks'\n", binary, metrics)), HasSubstr("is the label"));
}

TEST_F(JobRanking, DataThatHasNoOrderToLearnIsRefused) {
  write("q,a,1\nr,a,0\nq,b,0\n");
  EXPECT_THAT(error_of(text()), AllOf(HasSubstr("examples 1 and 3 of data.train have one value of "
                                                "\"query\""),
                                      HasSubstr("sort the files by that column")));
  write("q,a,1\nq,b,1\nr,a,0\n");
  EXPECT_THAT(error_of(text()), HasSubstr("there is no order to learn"));
  write("q,a,1\nq,b,-1\n");
  EXPECT_THAT(error_of(text()), HasSubstr("example 2 has the label -1"));
}

// Every list belongs to one pipeline.
TEST_F(JobRanking, ListsAreDealtOutWhole) {
  std::string rows;
  for (int list = 0; list < 50; ++list)
    for (int i = 0; i < 4; ++i) rows += str("q", list, ",", i, ",", i == 0 ? 1 : 0, "\n");
  write(rows);
  const Job read = job(text());
  const FittedFeatures features = fit_features(read);
  std::int64_t lists = 0;
  for (std::int64_t pipeline = 0; pipeline < 3; ++pipeline) {
    const RankedLists part = read_lists(
        read, features,
        train_source(read, features, {.num_input_pipelines = 3, .input_pipeline_id = pipeline}),
        "data.train");
    EXPECT_EQ(part.examples(), 4 * part.lists());
    EXPECT_GT(part.lists(), 5);
    lists += part.lists();
  }
  EXPECT_EQ(lists, 50);
}

TEST_F(JobRanking, TheQidOfLibsvmIsTheGroup) {
  folder_.write("a.svm", "1 qid:3 1:1\n0 qid:3 2:1\n2 qid:4 1:1\n0 qid:4 3:1\n");
  const Job read =
      job("[data]\ntrain = 'a.svm'\ngroup = 'qid'\n[data.libsvm]\ndimension = 3\n[model]\nkind = "
          "'wide'\nobjective = 'ranking'\n");
  const FittedFeatures features = fit_features(read);
  verify_training_lists(read, features);
  EXPECT_EQ(read_lists(read, features, train_source(read, features), "data.train").lists(), 2);
}

}  // namespace
}  // namespace cairn::tools
