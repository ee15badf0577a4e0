// A job's life by the command: trained, evaluated again from the model on disk, and predicted with.
// The job is job.toml and its data a.csv, in `folder`.
#pragma once
#include <gmock/gmock.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {

// Numbers for made-up data, the same in every run.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  int below(int n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 40) % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t state_;
};

class JobRun {
 public:
  std::string path(const std::string& name) const { return folder.path() + "/" + name; }
  std::string output() const { return folder.read("output"); }
  int cairn(std::vector<std::string> arguments) {
    folder.write("output", "");
    arguments.insert(arguments.begin(), CAIRN_PROGRAM);
    ChildProcess child({.arguments = arguments, .output_file = path("output")});
    return end_in_time(child, 120'000, output()).code;
  }

  // The metrics that the report has.
  Json trained(const std::string& strategy) {
    EXPECT_EQ(cairn({"train", path("job.toml"), "--strategy", strategy, "--dir", path("run"),
                     "--report", path("report")}),
              0)
        << output();
    return parse_json(folder.read("report"), "the report")["metrics"];
  }
  void expect_judged_as(const Json& reported, double tolerance) {
    ASSERT_EQ(cairn({"evaluate", path("run"), "--data", path("a.csv"), "--json"}), 0) << output();
    const Json evaluated = parse_json(output(), "the evaluation");
    for (const auto& [name, value] : evaluated["metrics"].items())
      EXPECT_NEAR(value.get<double>(), reported[name].get<double>(), tolerance) << name;
  }
  // The lines that are predicted for these; what comes first is the header.
  std::vector<std::string> predicted(const std::string& examples) {
    folder.write("new.csv", examples);
    EXPECT_EQ(
        cairn({"predict", path("run"), "--data", path("new.csv"), "--out", path("scores.csv")}), 0)
        << output();
    std::istringstream lines(folder.read("scores.csv"));
    std::vector<std::string> all;
    for (std::string line; lines >> line;) all.push_back(line);
    return all;
  }

  TempFolder folder;
};

}  // namespace cairn::tools
