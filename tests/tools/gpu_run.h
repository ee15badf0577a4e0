// RunOnAGpu: programs whose GPUs are fake drivers
// (tests/core/kernels/cuda/runtime/fake_library.cc), and a small job for them.
#pragma once
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {

class RunOnAGpu : public ::testing::Test {
 protected:
  RunOnAGpu() {
    std::string rows;
    for (int i = 0; i < 400; ++i) rows += std::to_string(i % 10) + (i % 10 < 5 ? ",1\n" : ",0\n");
    folder_.write("a.csv", rows);
    folder_.write("job.toml",
                  "[data]\ntrain = 'a.csv'\ntest = 'a.csv'\nbatch = 40\nepochs = 3\n"
                  "[data.csv]\ncolumns = ['x:float32', 'y:float32']\nlabel = {column = 'y'}\n"
                  "[features]\nnumeric = 'x'\n[model]\nkind = 'deep'\nhidden = [8]\n"
                  "[evaluation]\nmetrics = 'logloss'\n");
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  // `output`: the file that takes what it says.
  ChildProcess start(std::vector<std::string> arguments, const std::string& output,
                     std::vector<std::string> environment = {}) const {
    arguments.insert(arguments.begin(), CAIRN_PROGRAM);
    environment.push_back(str("CAIRN_CUDA_LIBRARY=", CAIRN_FAKES, "/libcairn_fake_gpu.so"));
    environment.push_back(str("LD_LIBRARY_PATH=", CAIRN_FAKES));
    environment.push_back("CAIRN_FAKE_SUMS=" + folder_.path());
    return ChildProcess(
        {.arguments = arguments, .environment = environment, .output_file = path(output)});
  }
  // The output of a program for which CAIRN_CUDA_LIBRARY is `library`.
  std::string with_library(const std::string& library, std::vector<std::string> arguments) const {
    folder_.write("said", "");
    arguments.front() = str(CAIRN_PROGRAMS, "/", arguments.front());
    ChildProcess child(
        {.arguments = arguments,
         .environment = {str("LD_LIBRARY_PATH=", CAIRN_FAKES), "CAIRN_CUDA_LIBRARY=" + library},
         .output_file = path("said")});
    EXPECT_EQ(end_in_time(child, 60'000, "").code, 0);
    return folder_.read("said");
  }
  int cairn(std::vector<std::string> arguments, std::vector<std::string> environment = {}) const {
    folder_.write("output", "");
    ChildProcess child = start(std::move(arguments), "output", std::move(environment));
    return end_in_time(child, 120'000, output()).code;
  }
  std::string output() const { return folder_.read("output"); }
  Json report() const { return parse_json(folder_.read("report"), "the report"); }

  TempFolder folder_;
};

}  // namespace cairn::tools
