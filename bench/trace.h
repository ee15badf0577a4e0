// --trace: a few steps as all processes saw them, for ui.perfetto.dev or chrome://tracing.
#pragma once
#include <string>

namespace cairn::bench {

// Joins the files that the processes left in `folder` (core/disk/trace.h) into `file`: what
// happened in the middle of the newest second, for long enough to see several steps whole. Errors
// NotFound: nothing was recorded; those of writing.
void join_traces(const std::string& folder, const std::string& file);

}  // namespace cairn::bench
