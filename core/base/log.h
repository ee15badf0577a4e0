// The process's log: what happens to the cluster, one line per event. spdlog writes it, from behind
// this header: formatting with spdlog costs every file that does it some five seconds of compiling.
//   Thread  any, except log_to(file, title): see there.
#pragma once
#include <functional>
#include <string>

#include "core/base/error.h"

namespace cairn {

enum class LogLevel { kInfo, kWarning, kError, kOff };

// Takes one line, without its end. It is called on the thread that logs; the process's log calls
// its sink for one thread at a time. A sink must not log.
using LogSink = std::function<void(LogLevel, const std::string&)>;

// Logs one line at that level.
//   Cost  one load where the level is dropped; otherwise a lock, and a write that is flushed.
void log_line(LogLevel level, const std::string& text);

// log_info(name, " is back after ", seconds, " s")
template <typename... Parts>
void log_info(const Parts&... parts) {
  log_line(LogLevel::kInfo, str(parts...));
}
template <typename... Parts>
void log_warning(const Parts&... parts) {
  log_line(LogLevel::kWarning, str(parts...));
}
template <typename... Parts>
void log_error(const Parts&... parts) {
  log_line(LogLevel::kError, str(parts...));
}

// Lines below `least` are dropped. At first: kInfo.
void set_log_level(LogLevel least);

// Sends the lines to `file`, or to standard error if `file` is empty; before the first call they go
// to standard output. `title` names the process in each line.
//   Thread  call it before other threads log: spdlog replaces its logger without a lock.
//   Errors  PermissionDenied: the file cannot be written. If it cannot be written later on, as on a
//           full disk, one message goes to standard error, and lines are lost until it can be
//           written again.
void log_to(const std::string& file, const std::string& title);

// Sends the lines to `sink`, such as a program's own log. An empty sink undoes that: they go where
// they went before.
void log_to(LogSink sink);

// `value` in decimal with `digits` digits behind the point.
std::string fixed(double value, int digits);

}  // namespace cairn
