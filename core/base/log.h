// The process's log: what happens to the cluster, a line an event. spdlog writes it, from behind
// this header: formatting with it costs each file that does some five seconds of compiling.
//
// Thread: any.
#pragma once
#include <functional>
#include <string>

#include "core/base/error.h"

namespace cairn {

enum class LogLevel { kInfo, kWarning, kError, kOff };

// Takes a line, without its end. Called on the thread that logs, by one thread at a time if the
// process's log is it.
using LogSink = std::function<void(LogLevel, const std::string&)>;

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

// Lines go to standard output at first. `file` empty: to standard error. `title` names the process
// in each line.
//   Errors  PermissionDenied: the file cannot be written. A file that cannot be written later on,
//           as on a full disk, is told to standard error once; what is logged from then on is lost
//           until it can be written again.
void log_to(const std::string& file, const std::string& title);

// Lines go to `sink`, such as a program's own log; nothing: as they did before the first call.
void log_to(LogSink sink);

// With so many digits behind the point.
std::string fixed(double value, int digits);

}  // namespace cairn
