// RunHost: the process that a run runs in, as the run needs it.
#pragma once
#include <atomic>
#include <functional>
#include <string>

#include "tools/job/run/run_output.h"

namespace cairn::tools {

struct RunHost {
  RunOutput& output;
  // The number of the signal that asks the run to save and end; 0: none does.
  const std::atomic<int>& interrupted;
  std::string programs = "";  // the folder of Cairn's programs; empty: that of the running one
  // Called when job and data have been read, before anything is made: until then there is nothing
  // to lose.
  std::function<void()> prepared = {};

  void tell_prepared() const {
    if (prepared) prepared();
  }
};

}  // namespace cairn::tools
