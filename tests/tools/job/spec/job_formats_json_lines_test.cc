// JSON lines by the command: trained with and without parameter servers and through a data service,
// from several files, plain and compressed; evaluated again and predicted with from the model on
// disk.
#include "core/base/error.h"
#include "tests/tools/job_run.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;

constexpr const char* kJob =
    "[data]\ntrain = 'part-*.jsonl'\ntest = 'part-1.jsonl'\nbatch = 50\nepochs = 20\n"
    "[data.jsonl]\ncolumns = ['n:int64', 'tags:string[]', {name = 'w', dtype = 'float32', "
    "indicator = true}, 'kind']\nlabel = {column = 'kind', positive = 'odd', negative = 'even'}\n"
    "[features]\nhashed = {n = 64, tags = 64}\nnumeric = 'w'\n[model]\nkind = 'deep'\nhidden = []\n"
    "[optimizer]\nkind = 'adagrad'\nlearning_rate = 0.5\n";

std::string line_of(int n) {
  return str("{\"tags\": [\"t", n % 5, "\", \"a|b\"], \"more\": {\"kind\": 1}, ",
             n % 3 == 0 ? "" : str("\"w\": ", n % 4, ".5, "), "\"kind\": \"",
             n % 2 == 1 ? "odd" : "even", "\", \"n\": ", n % 20, "}\n");
}

class JsonLinesRun : public ::testing::TestWithParam<std::vector<std::string>> {
 protected:
  JsonLinesRun() {
    for (int part = 0; part < 3; ++part) {
      std::string lines;
      for (int n = 0; n < 200; ++n) lines += line_of(part * 200 + n);
      run_.folder.write(str("part-", part, ".jsonl"), lines);
    }
    run_.folder.write("job.toml", kJob);
  }
  // The first line of a job's refusal.
  std::string refused(const std::string& lines, const std::string& job = kJob) {
    run_.folder.write("part-2.jsonl", lines);
    run_.folder.write("job.toml", job);
    EXPECT_EQ(run_.cairn({"train", run_.path("job.toml"), "--dir", run_.path("run"), "--strategy",
                          "one_device"}),
              1);
    return run_.output();
  }

  JobRun run_;
};

TEST_P(JsonLinesRun, LearnsWhatTheObjectsSay) {
  std::vector<std::string> train{"train",    run_.path("job.toml"), "--dir", run_.path("run"),
                                 "--report", run_.path("report")};
  train.insert(train.end(), GetParam().begin(), GetParam().end());
  ASSERT_EQ(run_.cairn(train), 0) << run_.output();
  const Json report = parse_json(run_.folder.read("report"), "the report");
  EXPECT_GT(report["metrics"]["auc"], 0.99);
  // New files need no label, and name their columns themselves.
  run_.folder.write("new.jsonl",
                    "{\"tags\": [\"t1\"], \"n\": 1}\n{\"n\": 2, \"w\": 1, \"tags\": []}\n");
  ASSERT_EQ(run_.cairn({"predict", run_.path("run"), "--data", run_.path("new.jsonl"), "--out",
                        run_.path("scores.csv")}),
            0)
      << run_.output();
  run_.folder.write("same.jsonl", line_of(3) + line_of(4));
  ASSERT_EQ(run_.cairn({"evaluate", run_.path("run"), "--data", run_.path("same.jsonl")}), 0)
      << run_.output();
  EXPECT_THAT(run_.output(), HasSubstr("auc"));
}

INSTANTIATE_TEST_SUITE_P(
    Under, JsonLinesRun,
    ::testing::Values(std::vector<std::string>{"--strategy", "one_device"},
                      std::vector<std::string>{"--strategy", "parameter_server"},
                      std::vector<std::string>{"--strategy", "parameter_server", "--data-workers",
                                               "1"}),
    [](const auto& flags) {
      return flags.param.size() > 2 ? std::string("data_service") : flags.param[1];
    });

using JsonLinesRefusals = JsonLinesRun;
INSTANTIATE_TEST_SUITE_P(Of, JsonLinesRefusals, ::testing::Values(std::vector<std::string>{}));

TEST_P(JsonLinesRefusals, NameFileLineColumnAndCureInTheJobsWords) {
  EXPECT_THAT(refused(line_of(1) + "{\"kind\": \"odd\", \"tags\": []}\n"),
              HasSubstr("part-2.jsonl:2: column \"n\": there is no value for it (no such key, or "
                        "null), and the column has no \"default\"; give it one"));
  EXPECT_THAT(refused("{\"n\": 1, \"tags\": [[1]], \"kind\": \"odd\"}\n"),
              HasSubstr("part-2.jsonl:1:11: column \"tags\": a list stands there"));
  std::string job = kJob;
  job.replace(job.find("'tags:string[]'"), 15,
              "{name = 'tags', dtype = 'string[]', separator = ';'}");
  EXPECT_THAT(refused(line_of(1), job), HasSubstr("JSON has lists: remove it"));
}

}  // namespace
}  // namespace cairn::tools
