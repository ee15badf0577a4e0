// Runs of a job on a GPU, as a user sees them; the GPU is the fake driver's
// (tests/core/kernels/cuda/runtime/fake_library.cc).
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/tools/gpu_run.h"
#include "tools/launch/gpu_figures.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// A job whose model is a table of 20,000 rows and a small network: c.csv and table.toml.
struct TableJob {
  int categories;  // as many rows in c.csv, each with one of its own
  int batch, width;
};
void write_table_job(TempFolder& folder, const TableJob& job) {
  std::string rows;
  for (int i = 0; i < job.categories; ++i)
    rows += str("c", i * 7 % job.categories, i % 10 < 5 ? ",1\n" : ",0\n");
  folder.write("c.csv", rows);
  folder.write("table.toml",
               str("[data]\ntrain = 'c.csv'\ntest = 'c.csv'\nbatch = ", job.batch,
                   "\n[data.csv]\ncolumns = ['c:string', 'y:float32']\nlabel = {column = 'y'}\n"
                   "[features]\nhashed = {c = 20000}\n"
                   "[model]\nkind = 'deep'\nhidden = [8]\nembedding_dim = ",
                   job.width,
                   "\n[optimizer]\nkind = 'lazy_adam'\nlearning_rate = "
                   "0.001\n[evaluation]\nmetrics = 'logloss'\n"));
}

TEST_F(RunOnAGpu, OfOneProcessTellsItsGpuOnTheLineAndInTheReport) {
  ASSERT_EQ(cairn({"train", path("job.toml"), "--strategy", "one_device", "--device", "gpu",
                   "--deterministic", "--dir", path("run"), "--report", path("report")}),
            0)
      << output();
  EXPECT_THAT(output(), HasSubstr("computes on gpu:0 (a fake GPU, 16.0 GiB"));
  EXPECT_THAT(output(), HasSubstr("gpu 93 %, 0.0/16.0 GiB"));
  const Json gpus = report()["gpus"];
  ASSERT_EQ(gpus.size(), 1u) << gpus;
  EXPECT_TRUE(gpus[0]["task"].is_null());
  EXPECT_EQ(gpus[0]["device"], "gpu:0");
  EXPECT_EQ(gpus[0]["model"], "a fake GPU");
  EXPECT_GT(gpus[0]["used_bytes"].get<std::size_t>(), 0u);
  EXPECT_GT(gpus[0]["variables_bytes"].get<std::size_t>(), 0u);
  EXPECT_EQ(gpus[0]["busy_percent"], 93);
}

// ---- tables that do not fit ----

// The same job with its table on the GPU, behind a cache, and behind a cache after a resumption.
TEST_F(RunOnAGpu, WithATableBehindACacheLearnsTheSame) {
  write_table_job(folder_, {.categories = 400, .batch = 40, .width = 4});
  const auto train = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "train",    path("table.toml"), "--strategy",  "one_device",         "--device", "gpu",
        "--report", path("report"),     "--overwrite", "--checkpoint-every", "never"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(cairn(arguments), 0) << output();
    return report();
  };
  const std::vector<std::string> cache = {"--device-cache", "300 KB"};
  const Json whole = train({"--epochs", "3", "--dir", path("whole")});
  EXPECT_EQ(whole["gpus"][0]["cache_bytes"], 0);
  const Json cached = train({"--epochs", "3", "--dir", path("cached"), cache[0], cache[1]});
  EXPECT_GT(cached["gpus"][0]["cache_bytes"].get<int>(), 100'000);
  EXPECT_GT(cached["gpus"][0]["cache_found"].get<double>(), 0);
  EXPECT_LT(cached["gpus"][0]["used_bytes"], whole["gpus"][0]["used_bytes"]);
  EXPECT_EQ(cached["metrics"], whole["metrics"]);
  train({"--epochs", "1", "--dir", path("begun"), cache[0], cache[1]});
  const Json resumed = train(
      {"--epochs", "3", "--dir", path("resumed"), cache[0], cache[1], "--resume", path("begun")});
  EXPECT_EQ(resumed["metrics"], whole["metrics"]);
}

// ---- which there are, and why no more ----

struct Library {
  std::string path;   // of CAIRN_CUDA_LIBRARY
  std::string words;  // the reason that the user reads
};

TEST_F(RunOnAGpu, IsOnTheListOfDevicesWithWhatIsNotUsedAndWhy) {
  const std::string fake = str(CAIRN_FAKES, "/libcairn_fake_gpu.so");
  const std::string said = with_library(fake, {"cairn", "devices"});
  EXPECT_TRUE(said.starts_with("cpu ")) << said;
  EXPECT_THAT(said, HasSubstr("\ngpu:0  a fake GPU, 16.0 GiB, compute capability 9.0\n"
                              "replicas that have a GPU each sum values there, by fake drivers\n"
                              "elementwise operations on GPUs are interpreted: there is no fake "
                              "compiler\n"
                              "not used: an older fake GPU has compute capability 7.5, and 8.0 is "
                              "the least that is used\n"));
  const Json listed = parse_json(with_library(fake, {"cairn", "devices", "--json"}), "the list");
  EXPECT_EQ(listed["gpus"][0]["name"], "gpu:0");
  EXPECT_THAT(listed["not_used"].get<std::string>(), HasSubstr("7.5"));
  EXPECT_EQ(listed["elementwise"], "interpreted: there is no fake compiler");
}

TEST_F(RunOnAGpu, IsNotToBeHadWithoutTheLibraryAndTheListAndAWorkerSayWhyInOneLine) {
  folder_.write("text.so", "no library\n");
  const Library wrong[] = {
      {path("missing.so"),
       str("CAIRN_CUDA_LIBRARY names ", path("missing.so"), ", which is not there")},
      {path("text.so"), str(path("text.so"), " cannot be loaded: ")},
      {str(CAIRN_FAKES, "/libcuda.so.1"),
       str(CAIRN_FAKES, "/libcuda.so.1 is another library than Cairn's libcairn_cuda.so")}};
  for (const Library& one : wrong) {
    const std::string list = with_library(one.path, {"cairn", "devices"});
    EXPECT_THAT(list, HasSubstr("\nno GPU is used: " + one.words));
    EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 2) << list;
    const std::string worker =
        with_library(one.path, {"cairn-worker", "--listen", "127.0.0.1:0", "--parent-pid",
                                "999999999"});  // Linux numbers no process so high: it ends at once
    const std::string told = "computes on the CPU; no GPU is used: " + one.words;
    EXPECT_THAT(worker, HasSubstr(told));
    EXPECT_EQ(worker.find("computes on"), worker.rfind("computes on")) << worker;
  }
}

// ---- runs ----

TEST_F(RunOnAGpu, WithoutOneHasNothingToTellOfGpus) {
  ASSERT_EQ(cairn({"train", path("job.toml"), "--strategy", "one_device", "--dir", path("run"),
                   "--report", path("report")}),
            0)
      << output();
  EXPECT_TRUE(report()["gpus"].is_null());
}

TEST_F(RunOnAGpu, LeavesATraceInWhichTheGpuHasATrack) {
  std::filesystem::create_directory(path("traces"));
  ASSERT_EQ(cairn({"train", path("job.toml"), "--ps", "1", "--workers", "1", "--dir", path("run")},
                  {"CAIRN_TRACE=" + path("traces")}),
            0)
      << output();
  std::set<std::string> seen;
  for (const auto& entry : std::filesystem::directory_iterator(path("traces"))) {
    const std::string name = entry.path().filename();
    const Json events = parse_json(folder_.read("traces/" + name), name);
    int track = -1;
    for (const Json& event : events)
      if (event["name"] == "thread_name" && event["args"]["name"] == "gpu:0") track = event["tid"];
    for (const Json& event : events)
      if (event.value("tid", 0) == track && event["ph"] == "X")
        seen.insert(event["name"].get<std::string>().substr(0, 7));
  }
  EXPECT_THAT(seen, IsSupersetOf({"product", "copy to"}));
}

TEST_F(RunOnAGpu, OfWorkersTellsTheirGpusInTheStatusAndTheReport) {
  ChildProcess run = start({"train", path("job.toml"), "--ps", "1", "--workers", "1", "--epochs",
                            "1000000", "--dir", path("run"), "--report", path("report")},
                           "run_output");
  pollfd ended{.fd = run.pidfd(), .events = POLLIN};
  while (output().find("93 % busy") == std::string::npos && ::poll(&ended, 1, 100) == 0)
    cairn({"status", path("run")});
  EXPECT_THAT(output(), HasSubstr("    gpu:0 a fake GPU: 0.0 of 16.0 GiB used (variables "));
  run.send(SIGINT);
  EXPECT_EQ(end_in_time(run, 120'000, folder_.read("run_output")).code, 130);
  const Json gpus = report()["gpus"];
  ASSERT_EQ(gpus.size(), 1u) << gpus;
  EXPECT_EQ(gpus[0]["task"], "/job:worker/task:0");
  EXPECT_EQ(gpus[0]["device"], "gpu:0");
}

// Rows and gradients lie in memory that worker and ps share, and travel between it and the GPU
// without a detour; over TCP they come and go in other memory, and give the same model.
TEST_F(RunOnAGpu, OfAWorkerBesideItsPsRegistersTheMemoryThatTheyShare) {
  write_table_job(folder_, {.categories = 2000, .batch = 1000, .width = 16});
  const auto arguments = [&](const std::string& transport, const std::string& epochs) {
    return std::vector<std::string>{"train",
                                    path("table.toml"),
                                    "--ps",
                                    "1",
                                    "--workers",
                                    "1",
                                    "--epochs",
                                    epochs,
                                    "--pipeline-depth",
                                    "1",
                                    "--transport",
                                    transport,
                                    "--dir",
                                    path(transport + epochs),
                                    "--report",
                                    path("report")};
  };
  Json metrics;
  for (const char* transport : {"tcp", "auto"}) {
    ASSERT_EQ(cairn(arguments(transport, "4")), 0) << output();
    EXPECT_TRUE(metrics.is_null() || metrics == report()["metrics"]) << report()["metrics"];
    metrics = report()["metrics"];
  }
  ChildProcess run = start(arguments("auto", "1000000"), "run_output");
  pollfd ended{.fd = run.pidfd(), .events = POLLIN};
  const auto registered = [&] {
    if (cairn({"status", path("auto1000000"), "--json"}) != 0) return std::size_t{0};
    const std::vector<GpuSeen> seen = gpus_in(parse_json(output(), "the status"));
    return seen.empty() ? std::size_t{0} : seen.front().figures.registered_bytes;
  };
  for (int asked = 0; asked < 300 && registered() < 64'000; ++asked)
    if (::poll(&ended, 1, 100) != 0) break;
  EXPECT_GE(registered(), 64'000u);  // of 1,000 rows
  run.send(SIGINT);
  EXPECT_EQ(end_in_time(run, 120'000, folder_.read("run_output")).code, 130);
}

}  // namespace
}  // namespace cairn::tools
