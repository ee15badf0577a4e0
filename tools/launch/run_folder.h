// Folders of runs: where a new one goes, and which is the newest.
#pragma once
#include <functional>
#include <string>

namespace cairn::tools {

// The name of a new run's folder, by the time and the process: "runs/20261121-110902-26059", below
// the working folder.
std::string new_run_folder();
// The current UTC time, as strftime() writes it.
std::string time_stamp(const char* format);
// The newest folder below ./runs that is `wanted`; empty: there is none. A name begins with the
// time of the run's start, so the newest is the last one by name.
std::string newest_run(const std::function<bool(const std::string& folder)>& wanted);

}  // namespace cairn::tools
