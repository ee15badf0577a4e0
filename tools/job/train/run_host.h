// RunHost: the process of a run, as far as the run depends on it.
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
  // Called once job and data have been read and before the run creates anything. Until then an
  // interrupt may end the process at once.
  std::function<void()> prepared = {};

  void tell_prepared() const {
    if (prepared) prepared();
  }
};

}  // namespace cairn::tools
