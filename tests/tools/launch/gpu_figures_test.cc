#include "tools/launch/gpu_figures.h"

#include <gmock/gmock.h>

#include "core/kernels/device_figures_json.h"

namespace cairn::tools {
namespace {

constexpr std::size_t kGib = std::size_t{1} << 30;

DeviceFigures figures(std::size_t values = 3 * kGib) {
  DeviceFigures made;
  made.model = "NVIDIA H100 80GB HBM3";
  made.memory_bytes = 80 * kGib;
  made.variables_bytes = 8 * kGib;
  made.values_bytes = values;
  made.scratch_bytes = kGib / 2;
  made.busy_percent = 93;
  return made;
}

Json worker(const char* name, const Json& devices) {
  Json task;
  task["task"] = name;
  task["details"]["devices"] = devices;
  return task;
}

// A coordinator's status of two workers with a GPU, of one that computes on the CPU, and of one
// that is away.
Json status() {
  Json said;
  said["workers"] = Json::array();
  said["workers"].push_back(
      worker("/job:worker/task:0", Json::array({figures_json("gpu:0", figures())})));
  said["workers"].push_back(
      worker("/job:worker/task:1", Json::array({figures_json("gpu:1", figures(kGib))})));
  said["workers"].push_back(worker("/job:worker/task:2", Json::array()));
  said["workers"].push_back(Json::object());
  return said;
}

TEST(GpuFigures, AreThoseOfTheWorkersThatHaveAGpu) {
  const auto gpus = gpus_in(status());
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[1].task, "/job:worker/task:1");
  EXPECT_EQ(gpus[1].name, "gpu:1");
  EXPECT_EQ(gpus[1].figures.used_bytes(), 9 * kGib + kGib / 2);
  EXPECT_EQ(gpus[1].figures.busy_percent, 93);
}

TEST(GpuFigures, OfAnAnswerThatIsNoneAreNone) {
  EXPECT_TRUE(gpus_in(Json("its answer cannot be read")).empty());
  Json wrong;
  wrong["workers"] = Json::array({"a worker", 7});
  EXPECT_TRUE(gpus_in(wrong).empty());
  Json device;
  device["device"] = 7;
  device["memory_bytes"] = "much";
  device["busy_percent"] = "very";
  wrong["workers"].push_back(worker("a task", Json::array({"a GPU", device})));
  const auto gpus = gpus_in(wrong);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].figures.memory_bytes, 0u);
  EXPECT_EQ(gpus[0].figures.busy_percent, std::nullopt);
}

TEST(GpuFigures, SayOfOneWhatItsMemoryIsFor) {
  EXPECT_EQ(gpu_text({"", "gpu:0", figures()}),
            "gpu:0 NVIDIA H100 80GB HBM3: 11.5 of 80.0 GiB used (variables 8.0, values of steps "
            "3.0, scratch 0.5), 93 % busy");
  DeviceFigures quiet = figures();
  quiet.busy_percent.reset();
  EXPECT_TRUE(gpu_text({"", "gpu:0", quiet}).ends_with("scratch 0.5)"));
}

TEST(GpuFigures, SayOfAllTogetherHowBusyAndHowFullTheyAre) {
  EXPECT_EQ(gpus_text(gpus_in(status())), "2 gpus 93 %, 21.0/160.0 GiB");
  EXPECT_EQ(gpus_text({{"", "gpu:0", figures()}}), "gpu 93 %, 11.5/80.0 GiB");
  EXPECT_EQ(gpus_text({}), "");
}

TEST(GpuFigures, OfARunAreTheMostMemoryAndTheMeanOfTheRest) {
  GpusOfRun run;
  EXPECT_TRUE(run.json().is_null());
  for (const int busy : {80, 100, 90}) {
    DeviceFigures now = figures(busy == 100 ? 5 * kGib : kGib);
    now.busy_percent = busy;
    run.add({{"/job:worker/task:0", "gpu:0", now}});
  }
  const Json told = run.json();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0]["task"], "/job:worker/task:0");
  EXPECT_EQ(told[0]["device"], "gpu:0");
  EXPECT_EQ(told[0]["used_bytes"], 13 * kGib + kGib / 2);
  EXPECT_EQ(told[0]["busy_percent"], 90);
  run.add({{"", "gpu:1", figures()}});
  EXPECT_TRUE(run.json()[0]["task"].is_null());
}

}  // namespace
}  // namespace cairn::tools
