// How full and how busy the GPUs of a run are: for `cairn status`, the live line and the report,
// which say nothing of GPUs where a run has none.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/kernels/device_figures.h"

namespace cairn::tools {

struct GpuSeen {
  std::string task;  // "/job:worker/task:0"; empty: the process that reports it
  std::string name;  // "gpu:0"
  DeviceFigures figures;
};

// Those of the workers that are there, from what a coordinator answers.
std::vector<GpuSeen> gpus_in(const Json& status);
// Those of this process that have one of the names; other names are of no GPU.
std::vector<GpuSeen> gpus_here(const std::vector<std::string>& names);

// "gpu:0 NVIDIA H100 80GB HBM3: 12.0 of 79.6 GiB used (variables 8.0, values of steps 3.5, scratch
// 0.5), 93 % busy".
std::string gpu_text(const GpuSeen& gpu);
// A brief text for all GPUs together: "gpu 93 %, 12.0/79.6 GiB", or "2 gpus ..."; empty if there
// are none. A GPU that several tasks of one host have counts once per task.
std::string gpus_text(const std::vector<GpuSeen>& gpus);

// Peak memory and mean use of the GPUs over a run.
class GpusOfRun {
 public:
  void add(const std::vector<GpuSeen>& gpus);
  // By GPU and task: the most memory that was used, and how busy it was on average; null: there was
  // no GPU.
  Json json() const;

 private:
  struct Sum {
    GpuSeen most;
    double busy = 0;
    int times = 0;  // that it said how busy it was
  };
  std::map<std::pair<std::string, std::string>, Sum> seen_;  // by task and name
};

}  // namespace cairn::tools
