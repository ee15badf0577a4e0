// Dates and embedded crosses by the command: trained with and without parameter servers and through
// a data service, evaluated again and predicted with from the model on disk.
#include "core/base/error.h"
#include "data/feature/date_format.h"
#include "tests/tools/job_run.h"

namespace cairn::tools {
namespace {

constexpr std::int64_t kFirst = 1709251200;  // Friday, 2024-03-01

class DatesRun : public ::testing::TestWithParam<std::vector<std::string>> {
 protected:
  // On weekends the one shop is full, and on other days the other.
  DatesRun() {
    std::string rows;
    for (int day = 0; day < 200; ++day)
      for (const char* shop : {"a", "b"}) {
        const std::int64_t date = kFirst + day * kSecondsPerDay;
        const bool weekend = part_of_date(DatePart::kDayOfWeek, date) >= 5;
        rows += str(date_text(date), ",", shop, ",", weekend == (shop[0] == 'a') ? 1 : 0, "\n");
      }
    run_.folder.write("a.csv", rows);
    run_.folder.write(
        "job.toml",
        "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nbatch = 50\nepochs = 20\n[data.csv]\ncolumns = "
        "['day:date:%Y-%m-%d', 'shop', 'y:float32']\nlabel = 'y'\n[features]\nvocabulary = 'shop'\n"
        "dates = {day = ['day_of_week', 'month', 'age']}\ncrosses = [{columns = "
        "['day_day_of_week', 'shop'], deep = true}]\n[model]\nkind = 'deep'\nhidden = []\n"
        "[optimizer]\nkind = 'adagrad'\nlearning_rate = 0.5\n");
  }

  JobRun run_;
};

TEST_P(DatesRun, LearnsWhatTheDayOfTheWeekAndTheShopTellTogether) {
  std::vector<std::string> train{"train",    run_.path("job.toml"), "--dir", run_.path("run"),
                                 "--report", run_.path("report")};
  train.insert(train.end(), GetParam().begin(), GetParam().end());
  ASSERT_EQ(run_.cairn(train), 0) << run_.output();
  const Json metrics = parse_json(run_.folder.read("report"), "the report")["metrics"];
  EXPECT_GT(metrics["auc"], 0.99);
  run_.expect_judged_as(metrics, 1e-5);
  // A Saturday and a Sunday of other years, and a Monday.
  const auto scores = run_.predicted("2023-03-04,a\n2025-03-02,a\n2024-03-04,a\n2024-03-04,b\n");
  ASSERT_EQ(scores.size(), 5u);
  EXPECT_GT(std::stof(scores[1]), std::stof(scores[3]));
  EXPECT_GT(std::stof(scores[2]), std::stof(scores[3]));
  EXPECT_GT(std::stof(scores[4]), 0.5f);
  run_.folder.write("new.csv", "2023-02-30,a\n");
  EXPECT_EQ(run_.cairn({"predict", run_.path("run"), "--data", run_.path("new.csv"), "--out",
                        run_.path("none.csv")}),
            1);
  EXPECT_THAT(run_.output(), ::testing::HasSubstr("new.csv:1:1: column \"day\": \"2023-02-30\" is "
                                                  "no day of the calendar"));
}

INSTANTIATE_TEST_SUITE_P(
    Under, DatesRun,
    ::testing::Values(std::vector<std::string>{"--strategy", "one_device"},
                      std::vector<std::string>{"--strategy", "parameter_server"},
                      std::vector<std::string>{"--strategy", "parameter_server", "--data-workers",
                                               "1"}),
    [](const auto& flags) {
      return flags.param.size() > 2 ? std::string("data_service") : flags.param[1];
    });

}  // namespace
}  // namespace cairn::tools
