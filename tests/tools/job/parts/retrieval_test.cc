// Candidates ranked for queries; and what a job has to say for it.
#include "tools/job/parts/retrieval.h"

#include <gmock/gmock.h>

#include <cmath>

#include "nn/metrics/ranking_metrics.h"
#include "tests/tools/job_fixture.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_metrics.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::unique_ptr<nn::Metric>> recall_and_mrr() {
  std::vector<std::unique_ptr<nn::Metric>> all;
  all.push_back(std::make_unique<nn::RecallAtK>(nn::TopOptions{.k = 1}));
  all.push_back(std::make_unique<nn::Mrr>());
  return all;
}

// Candidates 7 = (1, 0), 8 = (0, 1) and 9 = (1, 1); 7 belongs to two queries.
TEST(Retrieval, RanksAllCandidatesForEachQuery) {
  Retrieval retrieval;
  retrieval.add(std::vector<std::int64_t>{7, 8});
  retrieval.add(std::vector<std::int64_t>{9, 7});
  EXPECT_EQ(retrieval.examples(), 4);
  EXPECT_EQ(retrieval.candidates(), 3);
  const std::vector<float> vectors = {2, -1, 1, 0,   // 7 first
                                      3, 1,  0, 1,   // 9, 7, 8
                                      1, 1,  1, 1,   // 9 first
                                      0, 1,  5, 5};  // ties of 8 and 9, then 7, as it was first
  const auto evaluated = retrieval.evaluate(vectors, recall_and_mrr());
  EXPECT_NEAR(evaluated[0].second, 2.0 / 4, 1e-6);
  EXPECT_NEAR(evaluated[1].second, (1 + 1.0 / 3 + 1 + 1.0 / 3) / 4, 1e-6);
}

TEST(Retrieval, ExamplesCountByTheirWeights) {
  Retrieval retrieval;
  retrieval.add(std::vector<std::int64_t>{1, 2}, std::vector<float>{3, 1});
  const auto evaluated = retrieval.evaluate(std::vector<float>{1, 1, 1, -1}, recall_and_mrr());
  EXPECT_NEAR(evaluated[0].second, 3.0 / 4, 1e-6);
}

class JobRetrieval : public JobFixture {
 protected:
  static std::string text(const std::string& of_data, const std::string& of_model,
                          const std::string& label = "") {
    return "[data]\ntrain = 'a.csv'\n" + of_data + "[data.csv]\ncolumns = ['user', 'film', " +
           "'year:float32']\n" + label +
           "[features]\nvocabulary = ['user', 'film']\nnumeric = 'year'\n[model]\n" + of_model;
  }
  std::string error_of(const std::string& text) const {
    folder_.write("a.csv", "u,f,1\n");
    return JobFixture::error_of(text);
  }
};

const std::string kFilm = "candidate = 'film'\n";
const std::string kTowers =
    "objective = 'retrieval'\nquery = 'user'\ncandidate = ['film', 'year']\n";

TEST_F(JobRetrieval, HasTwoTowersAndNoLabel) {
  folder_.write("a.csv", "u,f,1\nu,g,1\nv,f,2\nw,f,3\n");
  const Job read = job(text(kFilm, kTowers + "temperature = 0.5\n"));
  EXPECT_EQ(read.model.kind, "two_tower");
  EXPECT_EQ(eval_metrics(read).front(), "recall@10");
  const FittedFeatures features = fit_features(read);
  ASSERT_NE(features.shares, nullptr);
  EXPECT_EQ(features.shares->candidates.shape()[0], 2);
  const auto shares = features.shares->log_share.values<float>();
  EXPECT_NEAR(std::exp(shares[0]) + std::exp(shares[1]), 1, 1e-6);
  EXPECT_NEAR(std::max(shares[0], shares[1]), std::log(0.75), 1e-6);
}

TEST_F(JobRetrieval, WhatItCannotMeanIsNamed) {
  EXPECT_EQ(error_of(text(kFilm, kTowers)), "it was taken");
  EXPECT_THAT(error_of(text("", kTowers)), HasSubstr("name with data.candidate the column"));
  EXPECT_THAT(error_of(text("candidate = 'flim'\n", kTowers)),
              AllOf(HasSubstr("data.candidate names"), HasSubstr("did you mean \"film\"?")));
  EXPECT_THAT(error_of(text(kFilm, kTowers, "label = {column = 'year'}\n")),
              HasSubstr("has no label"));
  EXPECT_THAT(error_of(text(kFilm, "objective = 'retrieval'\nkind = 'deep'\n")),
              HasSubstr("go together"));
  EXPECT_THAT(error_of(text(kFilm, "kind = 'deep'\n", "label = {column = 'year'}\n")),
              HasSubstr("is of model.objective = \"retrieval\""));
  EXPECT_THAT(
      error_of(text(kFilm, "objective = 'retrieval'\nquery = 'user'\ncandidate = 'film'\n")),
      AllOf(HasSubstr("\"year\" is a feature"), HasSubstr("name it, or remove")));
  EXPECT_THAT(error_of(text(kFilm, "objective = 'retrieval'\nquery = 'usr'\ncandidate = 'film'\n")),
              AllOf(HasSubstr("some.toml:11: model.query"), HasSubstr("user")));
  EXPECT_THAT(error_of(text(kFilm, "objective = 'retrieval'\nquery = 'user'\n")),
              HasSubstr("model.candidate names no feature"));
  EXPECT_THAT(error_of(text(kFilm, kTowers + "hidden = []\n")), HasSubstr("model.hidden"));
  EXPECT_THAT(error_of(text(kFilm, kTowers + "temperature = 0\n")), HasSubstr("temperature"));
}

}  // namespace
}  // namespace cairn::tools
