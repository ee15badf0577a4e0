// A run keeps its history, and `cairn plot` draws it.
#include <gmock/gmock.h>

#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;

class PlotCommand : public ::testing::Test {
 protected:
  // The exit status of `cairn` with these arguments; what it says is in the file output.
  int cairn(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CAIRN_PROGRAM);
    ChildProcess child({.arguments = arguments, .output_file = path("output")});
    return end_in_time(child, 120'000, folder_.read("output")).code;
  }
  void train(const std::string& run, std::vector<std::string> more) {
    std::string rows;
    for (int i = 0; i < 400; ++i) rows += std::to_string(i % 10) + (i % 10 < 5 ? ",1\n" : ",0\n");
    folder_.write("a.csv", rows);
    folder_.write("job.toml",
                  "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nbatch = 40\nepochs = 5\n[data.csv]\n"
                  "columns = ['x:float32', 'y:float32']\nlabel = {column = 'y'}\n[features]\n"
                  "numeric = 'x'\n[model]\nkind = 'deep'\nhidden = []\n[optimizer]\nkind = 'sgd'\n"
                  "learning_rate = 0.5\n");
    more.insert(more.begin(), {"train", path("job.toml"), "--dir", path(run)});
    ASSERT_EQ(cairn(more), 0) << folder_.read("output");
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  TempFolder folder_;
};

TEST_F(PlotCommand, DrawsARunInOneProcessBesideOneOnParameterServers) {
  train("alone", {"--strategy", "one_device"});
  train("cluster", {"--ps", "1", "--workers", "2"});
  const std::string history = folder_.read("cluster/history.jsonl");
  EXPECT_THAT(history, ::testing::StartsWith("{\"kind\":\"start\",\"step\":0}\n"));
  EXPECT_THAT(history, HasSubstr("\"step\":50,"));
  EXPECT_THAT(history, HasSubstr("\"data\":\"test\",\"metrics\":{\"auc\":"));

  ASSERT_EQ(cairn({"plot", path("alone"), path("cluster"), "--out", path("plot.html")}), 0)
      << folder_.read("output");
  const std::string page = folder_.read("plot.html");
  for (const char* text : {"</span>alone<", "</span>cluster<", "<h2>loss<", "<h2>staleness<",
                           "<h2>examples/s<", "<h2>auc, test data<"})
    EXPECT_THAT(page, HasSubstr(text));
}

TEST_F(PlotCommand, TellsOfADamagedLineAndDrawsTheRest) {
  folder_.write(
      "history.jsonl",
      "{\"kind\n{\"kind\":\"evaluation\",\"step\":2,\"data\":\"test\",\"metrics\":{\"auc\":1}}\n");
  EXPECT_EQ(cairn({"plot", folder_.path(), "--out", path("plot.html")}), 0);
  EXPECT_THAT(folder_.read("output"), HasSubstr("history.jsonl:1: left out"));
  EXPECT_THAT(folder_.read("plot.html"), HasSubstr("<h2>auc, test data<"));
}

TEST_F(PlotCommand, ReplacesAPlotAndNothingElse) {
  folder_.write("history.jsonl", "");
  folder_.write("mine.html", "<!doctype html>");
  EXPECT_EQ(cairn({"plot", folder_.path(), "--out", path("mine.html")}), 1);
  EXPECT_THAT(folder_.read("output"), HasSubstr("--overwrite"));
  EXPECT_EQ(folder_.read("mine.html"), "<!doctype html>");
  EXPECT_EQ(cairn({"plot", folder_.path(), "--out", path("mine.html"), "--overwrite"}), 0);
  EXPECT_EQ(cairn({"plot", folder_.path(), "--out", path("mine.html")}), 0);
}

}  // namespace
}  // namespace cairn::tools
