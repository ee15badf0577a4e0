// RunHistory: a run's reports of its progress, kept in its folder for `cairn plot` and other
// programs: history.jsonl, one JSON object per line.
//
//     {"kind":"start","step":0}
//     {"kind":"step","step":400,"seconds":1.02,"loss":0.41,"examples_per_s":98000,"staleness":1.7}
//     {"kind":"evaluation","step":500,"data":"test","metrics":{"auc":0.91}}
//
// A number that is not known, or is not finite, is null. A run that is taken up again in the same
// folder goes on in the same file, behind another "start": earlier lines of later steps than its
// step are void, and those steps are reported again.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/disk/appended_file.h"
#include "model/writers/run_pace.h"

namespace cairn {

// Thread: one; calls may block.
//   Errors  those of the disk; the line is then left out.
class RunHistory {
 public:
  static constexpr const char* kFile = "history.jsonl";

  struct Step {
    std::int64_t step = 0;
    double seconds = 0;  // of training, since the run began
    double loss = 0;
    std::int64_t examples = 0;        // of this run, from its beginning
    std::optional<double> staleness;  // empty: there are no parameter servers
  };

  // Goes on with the folder's file, or makes it. The folder is there.
  explicit RunHistory(const std::string& folder);

  // The run begins behind `step`: 0, or that of the checkpoint from which it goes on.
  void start(std::int64_t step);
  // Adds examples_per_s, computed by an ExamplesRate.
  void step(const Step& step);
  void evaluation(std::int64_t step, const std::string& data,
                  const std::vector<std::pair<std::string, double>>& metrics);

 private:
  void write(const Json& line);

  std::unique_ptr<AppendedFile> file_;
  ExamplesRate rate_;
};

}  // namespace cairn
