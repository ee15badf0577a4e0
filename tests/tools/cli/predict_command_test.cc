// Whole ways of a model: a run leaves it on disk, and another process predicts from it.
#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>

#include "core/base/json.h"
#include "core/graph/ops.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "nn/metrics/metrics.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kAdult = std::filesystem::absolute("examples/adult.toml").string();
const std::string kAdultTest =
    std::filesystem::absolute("examples/data/adult/adult.test.gz").string();

std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> all;
  const auto lines = open(Dataset::text_lines(file, {.skip_blank = true}));
  while (const auto line = lines->next()) all.push_back(line->front().string_values()[0]);
  return all;
}

// The lines of Adult's test data.
std::vector<std::string> adult_lines() {
  std::vector<std::string> all = lines_of(kAdultTest);
  std::erase_if(all, [](const std::string& line) { return line.starts_with("|"); });
  return all;
}

class Predict : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  int run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CAIRN_PROGRAM);
    ChildProcess child({.arguments = arguments, .output_file = path("output")});
    const int code = end_in_time(child, 120'000, folder_.read("output")).code;
    said_ = folder_.read("output");
    return code;
  }
  void train(std::vector<std::string> more, const std::string& steps = "200") {
    std::vector<std::string> arguments{"train",    kAdult,         "--steps", steps,
                                       "--report", path("report"), "--dir",   path("run")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ASSERT_EQ(run(arguments), 0) << said_;
    EXPECT_THAT(said_, HasSubstr("predict with: cairn predict " + path("run/model")));
  }
  // A few steps of another job, whose run replaces the one before.
  void train_by(const std::string& job) {
    ASSERT_EQ(run({"train", job, "--strategy", "one_device", "--steps", "3", "--overwrite", "--dir",
                   path("run")}),
              0)
        << said_;
  }
  Json report() const { return parse_json(folder_.read("report"), "the report"); }
  int predict(const std::string& data, const std::string& out, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"predict", path("run"), "--data", data, "--out", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  // The AUC of the file of predictions, by the lines' own labels.
  double auc_of(const std::string& file) const {
    const std::vector<std::string> predicted = lines_of(file), truth = adult_lines();
    EXPECT_EQ(predicted.front(), "probability");
    EXPECT_EQ(predicted.size(), truth.size() + 1);
    std::vector<float> probabilities, labels;
    for (std::size_t i = 0; i < truth.size() && i + 1 < predicted.size(); ++i) {
      probabilities.push_back(std::stof(predicted[i + 1]));
      labels.push_back(truth[i].find(">50K") != std::string::npos ? 1.0f : 0.0f);
    }
    const Shape all{static_cast<std::int64_t>(labels.size())};
    nn::Auc auc;
    auc.add(
        auc.summary(Tensor::of<float>(all, probabilities), Tensor::of<float>(all, labels)).eval());
    return auc.result();
  }
  void expect_as_reported() {
    ASSERT_EQ(predict(kAdultTest, path("out.csv")), 0) << said_;
    EXPECT_NEAR(auc_of(path("out.csv")), report()["metrics"]["auc"].get<double>(), 1e-9);
    EXPECT_EQ(report()["model"], path("run/model"));
  }

  TempFolder folder_;
  std::string said_;
};

TEST_F(Predict, AnotherProcessReachesTheReportedAuc) {
  train({"--strategy", "one_device"});
  expect_as_reported();
  EXPECT_GT(report()["metrics"]["auc"].get<double>(), 0.8);

  ASSERT_EQ(run({"evaluate", path("run"), "--data", kAdultTest, "--json"}), 0) << said_;
  const Json evaluated = parse_json(said_.substr(said_.rfind("{\n  \"examples\"")), "it");
  EXPECT_EQ(evaluated["examples"], adult_lines().size());
  const Json reported = report()["metrics"];
  for (const auto& [name, value] : reported.items())
    EXPECT_NEAR(evaluated["metrics"][name].get<double>(), value.get<double>(), 1e-6) << name;

  // the label is neither needed nor looked at
  std::string unlabelled, odd;
  for (const std::string& line : adult_lines()) {
    unlabelled += line.substr(0, line.rfind(',')) + "\n";
    odd += line.substr(0, line.rfind(',')) + ",who knows\n";
  }
  folder_.write("unlabelled.csv", unlabelled);
  folder_.write("odd.csv", odd);
  const std::string wanted = folder_.read("out.csv");
  ASSERT_EQ(predict(path("unlabelled.csv"), path("other.csv"), {"--batch", "1000"}), 0) << said_;
  EXPECT_EQ(folder_.read("other.csv"), wanted);
  ASSERT_EQ(predict(path("odd.csv"), path("other.csv"), {"--overwrite"}), 0) << said_;
  EXPECT_EQ(folder_.read("other.csv"), wanted);

  // every number, as JSON lines too
  ASSERT_EQ(predict(kAdultTest, path("out.jsonl")), 0) << said_;
  std::istringstream json(folder_.read("out.jsonl")), csv(wanted);
  std::string one, other;
  std::getline(csv, other);
  while (std::getline(json, one) && std::getline(csv, other))
    ASSERT_EQ(one, "{\"probability\": " + other + "}");

  EXPECT_NE(predict(kAdultTest, path("out.csv")), 0);
  EXPECT_THAT(said_, HasSubstr("--overwrite"));
  EXPECT_EQ(predict(kAdultTest, "-"), 0);
  EXPECT_THAT(said_, HasSubstr(wanted.substr(0, 100)));
}

TEST_F(Predict, ABadRowIsToldWithItsPlace) {
  train({"--strategy", "one_device"}, "5");
  folder_.write("bad.csv", adult_lines()[0] + "\nnonsense\n");
  EXPECT_EQ(predict(path("bad.csv"), path("out.csv")), 1);
  EXPECT_THAT(said_, AllOf(HasSubstr("bad.csv:2"), HasSubstr("with --skip-bad-rows")));
  EXPECT_FALSE(std::filesystem::exists(path("out.csv")));
  EXPECT_EQ(predict(path("nowhere.csv"), path("out.csv")), 1);
  EXPECT_THAT(said_, HasSubstr("nowhere.csv"));
}

TEST_F(Predict, RowsBeforeABadOneAreKeptAndAFlagLeavesItOut) {
  train({"--strategy", "one_device"}, "5");
  const std::vector<std::string> lines = adult_lines();
  const std::string good = lines[0] + "\n" + lines[1] + "\n" + lines[2] + "\n";
  folder_.write("good.csv", good + lines[3] + "\n");
  folder_.write("bad.csv",
                good + "nan" + lines[3].substr(lines[3].find(',')) + "\n" + lines[3] + "\n");
  ASSERT_EQ(predict(path("good.csv"), path("good.out")), 0) << said_;
  const std::string all = folder_.read("good.out");

  EXPECT_EQ(predict(path("bad.csv"), path("out.csv"), {"--batch", "2"}), 1);
  EXPECT_THAT(said_, AllOf(HasSubstr("bad.csv:4:1: column \"age\": \"nan\""),
                           HasSubstr("the predictions of the first 3 rows are in " +
                                     path("out.csv.partial"))));
  const std::string kept = folder_.read("out.csv.partial");
  EXPECT_EQ(lines_of(path("out.csv.partial")).size(), 4u);
  EXPECT_EQ(all.substr(0, kept.size()), kept);

  ASSERT_EQ(predict(path("bad.csv"), path("out.csv"), {"--skip-bad-rows"}), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("1 bad row of --data was left out (--skip-bad-rows"));
  EXPECT_EQ(folder_.read("out.csv"), all);
  EXPECT_EQ(run({"evaluate", path("run"), "--data", path("bad.csv")}), 1);
  EXPECT_THAT(said_, HasSubstr("with --skip-bad-rows"));
  EXPECT_EQ(run({"evaluate", path("run"), "--data", path("bad.csv"), "--skip-bad-rows"}), 0);
  EXPECT_THAT(said_, HasSubstr("4 examples:"));
}

TEST_F(Predict, AModelIsShownAndVerified) {
  train({"--strategy", "one_device"}, "5");
  EXPECT_EQ(run({"model", "show", path("run")}), 0);
  EXPECT_THAT(said_, AllOf(HasSubstr("model \"adult\" of step 5"), HasSubstr("numeric  float32"),
                           HasSubstr("probability  float32[?]"), HasSubstr("\"income\"")));
  EXPECT_EQ(run({"model", "verify", path("run/model")}), 0);
  EXPECT_THAT(said_, HasSubstr("clean"));
  folder_.write("run/model/graph", "nothing");
  EXPECT_EQ(run({"model", "verify", path("run/model")}), 1);
  EXPECT_THAT(said_, HasSubstr("run/model/graph"));
  EXPECT_EQ(run({"model", "show", folder_.path()}), 1);
  EXPECT_THAT(said_, HasSubstr("no saved model"));
}

TEST_F(Predict, ParameterServersLeaveTheSameKindOfModel) {
  train({"--ps", "2", "--workers", "1"});
  expect_as_reported();
}

TEST_F(Predict, MirroredReplicasDo) {
  train({"--strategy", "mirrored"});
  expect_as_reported();
}

TEST_F(Predict, WorkersInStepDo) {
  train({"--strategy", "multi_worker_mirrored", "--workers", "2"});
  expect_as_reported();
}

// Each of the other forms of data, from the training to a line for each example.
TEST_F(Predict, EveryFormOfDataIsReadAgain) {
  const std::string sets = std::filesystem::absolute("examples/data").string() + "/";
  const std::string examples = std::filesystem::absolute("examples").string() + "/";
  for (const auto& [job, data] :
       {std::pair(examples + "a9a.toml", sets + "libsvm/a9a.t.gz"),
        std::pair(examples + "sms-spam.toml", sets + "sms-spam/SMSSpamCollection.gz")}) {
    train_by(job);
    ASSERT_EQ(predict(data, path("out.csv"), {"--overwrite"}), 0) << job << ": " << said_;
    EXPECT_EQ(lines_of(path("out.csv")).size(), lines_of(data).size() + 1) << job;
  }
}

class PredictFrom : public Predict {
 protected:
  void train_by_text(const std::string& job) {
    folder_.write("job.toml", job);
    train_by(path("job.toml"));
  }
  // For a file, header included.
  std::vector<std::string> predictions(const std::string& data) {
    EXPECT_EQ(predict(path(data), path("out.csv"), {"--overwrite"}), 0) << said_;
    return lines_of(path("out.csv"));
  }
  // The exit status of a shell script.
  int shell(const std::string& script) {
    ChildProcess child({.arguments = {"/bin/sh", "-c", script}, .output_file = path("output")});
    const int code = end_in_time(child, 120'000, folder_.read("output")).code;
    said_ = folder_.read("output");
    return code;
  }
  void make_clicks(const std::string& file, const std::string& format) {
    ASSERT_EQ(run({"generate", "criteo-like", path(file), "--format", format, "--rows", "200",
                   "--table-rows-max", "50"}),
              0)
        << said_;
  }
};

// As Criteo's own test data: the same lines without the first cell.
TEST_F(PredictFrom, ClickLogsWithoutTheirLabel) {
  make_clicks("train.tsv", "tsv");
  train_by_text(
      "[data]\ntrain = 'train.tsv'\nformat = 'criteo'\nbatch = 50\n[features]\nlog1p = ['I1', "
      "'I2']\nhashed = {C1 = 100}\n[model]\nkind = 'deep'\nhidden = [4]\n");
  const auto with_labels = predictions("train.tsv");
  EXPECT_EQ(with_labels.size(), 201u);
  std::string lines;
  for (const std::string& line : lines_of(path("train.tsv")))
    lines += line.substr(line.find('\t') + 1) + "\n";
  folder_.write("test.tsv", lines);
  EXPECT_EQ(predictions("test.tsv"), with_labels);
}

TEST_F(PredictFrom, RecordsWhoseLabelIsReadPast) {
  make_clicks("train.bin", "records");
  std::string rows = "50";
  for (int i = 1; i < 26; ++i) rows += ", 50";
  train_by_text(
      "[data]\nformat = 'records'\ntrain = 'train.bin'\nbatch = 50\n[data.records]\nfields = "
      "['label:float32', 'dense:float32[13]', 'ids:int32[26]']\nlabel = 'label'\n"
      "[features.ids]\nids = [" +
      rows + "]\n[model]\nkind = 'dlrm'\nembedding_dim = 4\nbottom = [4]\nhidden = [4]\n");
  EXPECT_EQ(predictions("train.bin").size(), 201u);
}

// Training wants a label and a weight of each example; predicting wants neither.
TEST_F(PredictFrom, FilesWithAHeaderThatLackWhatOnlyTrainingReads) {
  std::string rows = "x,y,w\n", bare = "other,x\n";
  for (int i = 0; i < 100; ++i) {
    rows += str(i % 10, ",", i % 2, ",", 1 + i % 3, "\n");
    bare += str("any,", i % 10, "\n");
  }
  folder_.write("train.csv", rows);
  folder_.write("bare.csv", bare);
  train_by_text(
      "[data]\ntrain = 'train.csv'\nbatch = 10\nweight = 'w'\n[data.csv]\nheader = true\ncolumns = "
      "['x:float32', 'y:float32', 'w:float32']\nlabel = {column = 'y'}\n[features]\nnumeric = "
      "'x'\n[model]\nkind = 'deep'\nhidden = []\n");
  const auto full = predictions("train.csv");
  EXPECT_EQ(full.size(), 101u);
  EXPECT_EQ(predictions("bare.csv"), full);
}

// Each row is read once, as it comes. The first row shows whether there is a label, as need not be.
TEST_F(PredictFrom, APipe) {
  make_clicks("train.tsv", "tsv");
  train_by_text(
      "[data]\ntrain = 'train.tsv'\nformat = 'criteo'\nbatch = 50\n[features]\nlog1p = ['I1', "
      "'I2']\nhashed = {C1 = 100}\n[model]\nkind = 'deep'\nhidden = [4]\n");
  const auto wanted = predictions("train.tsv");
  const std::string tsv = path("train.tsv"), out = path("out.csv");
  const std::string cairn = std::string(CAIRN_PROGRAM) + " ", run = path("run") + " ";
  const auto predicted = [&](const std::string& command) {
    std::filesystem::remove(out);
    EXPECT_EQ(shell(command), 0) << said_;
    return lines_of(out);
  };
  const std::string from_input = cairn + "predict " + run + "--data - --batch 7 --out " + out;
  EXPECT_EQ(predicted("cat " + tsv + " | " + from_input), wanted);
  EXPECT_EQ(predicted("cut -f 2- " + tsv + " | gzip | " + from_input), wanted);
  EXPECT_EQ(predicted(from_input + " < " + tsv), wanted);
  EXPECT_EQ(predicted("mkfifo " + path("fifo") + "; cat " + tsv + " > " + path("fifo") + " & " +
                      cairn + "predict " + run + "--data " + path("fifo") + " --out " + out),
            wanted);
  EXPECT_EQ(shell("cat " + tsv + " | " + cairn + "evaluate " + run + "--data -"), 0);
  EXPECT_THAT(said_, HasSubstr("200 examples:"));
  EXPECT_EQ(shell("printf '1\\n' | " + from_input + " --overwrite"), 1);
  EXPECT_THAT(said_, HasSubstr("/dev/stdin:1: a short row"));
}

// The name of the training data decided its form; the name of the data it is evaluated on does not.
TEST_F(PredictFrom, AnEvaluationReadsTheFormThatWasTrainedOn) {
  std::string rows;
  for (int i = 0; i < 100; ++i) rows += str(i % 10, "\t", i % 10 > 4 ? 1 : 0, "\n");
  folder_.write("train.tsv", rows);
  folder_.write("other.csv", rows);
  train_by_text(
      "[data]\ntrain = 'train.tsv'\nbatch = 10\n[data.csv]\ncolumns = ['x:float32', 'y:float32']\n"
      "label = {column = 'y'}\n[features]\nnumeric = 'x'\n[model]\nkind = 'deep'\nhidden = []\n");
  ASSERT_EQ(run({"evaluate", path("run"), "--data", path("train.tsv")}), 0) << said_;
  const std::string evaluated = said_.substr(said_.rfind("100 examples:"));
  ASSERT_EQ(run({"evaluate", path("run"), "--data", path("other.csv")}), 0) << said_;
  EXPECT_EQ(said_.substr(said_.rfind("100 examples:")), evaluated);
  ASSERT_EQ(shell("gzip -c " + path("train.tsv") + " | " + CAIRN_PROGRAM + " evaluate " +
                  path("run") + " --data -"),
            0)
      << said_;
  EXPECT_EQ(said_.substr(said_.rfind("100 examples:")), evaluated);
}

// The model is trained on small numbers, the standardised labels; it predicts in the label's unit.
TEST_F(PredictFrom, ARegressionOfAStandardisedLabel) {
  std::string rows;
  for (int i = 0; i < 200; ++i) rows += str(i % 10, ",", 5000 + 100 * (i % 10), "\n");
  folder_.write("train.csv", rows);
  folder_.write("new.csv", "0\n9\n");
  train_by_text(
      "[data]\ntrain = 'train.csv'\ntest = 'train.csv'\nbatch = 20\nepochs = 20\n[data.csv]\n"
      "columns = ['x:float32', 'y:float32']\nlabel = {column = 'y'}\n[features]\nnumeric = 'x'\n"
      "[model]\nkind = 'deep'\nhidden = []\nobjective = 'regression'\nstandardize = true\n"
      "[optimizer]\nkind = 'sgd'\nlearning_rate = 0.1\n");
  const auto predicted = predictions("new.csv");
  ASSERT_EQ(predicted.size(), 3u);
  // After the few steps that are taken here, on its way from their mean, 5450, to 5000 and 5900.
  EXPECT_GT(std::stod(predicted[1]), 5000);
  EXPECT_LT(std::stod(predicted[1]), 5440);
  EXPECT_GT(std::stod(predicted[2]), 5460);
  EXPECT_LT(std::stod(predicted[2]), 5900);
}

}  // namespace
}  // namespace cairn::tools
