#include "core/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>
#include <iomanip>
#include <memory>
#include <mutex>
#include <sstream>

namespace cairn {
namespace {

// Guards other_sink, and is held while the sink runs, so that one thread is in it at a time. A sink
// that logs would therefore wait for itself.
std::mutex other_sink_lock;
LogSink other_sink;  // set by log_to(sink)

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: break;
  }
  return spdlog::level::off;
}

// spdlog's own handler would print one line for each line that is lost, and bury what the terminal
// is there for.
void tell_of_lost_lines_once(spdlog::logger& log, const std::string& file) {
  auto told = std::make_shared<std::atomic<bool>>(false);
  log.set_error_handler([told, file](const std::string& why) {
    if (told->exchange(true)) return;
    std::fprintf(stderr, "the log %s cannot be written, lines are lost until it can be: %s\n",
                 file.empty() ? "on standard error" : file.c_str(), why.c_str());
  });
}

}  // namespace

// The level comes first, so that a line that is dropped costs no lock.
void log_line(LogLevel level, const std::string& text) {
  const auto wanted = spdlog_level(level);
  if (!spdlog::should_log(wanted)) return;
  {
    std::lock_guard lock(other_sink_lock);
    if (other_sink) return other_sink(level, text);
  }
  spdlog::log(wanted, spdlog::string_view_t(text));
}

void set_log_level(LogLevel least) { spdlog::set_level(spdlog_level(least)); }

void log_to(const std::string& file, const std::string& title) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  try {
    if (file.empty())
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    else
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
  } catch (const spdlog::spdlog_ex& error) {
    throw PermissionDeniedError(str("the log cannot be written: ", error.what()));
  }
  auto log = std::make_shared<spdlog::logger>(title, std::move(sink));
  log->set_pattern("%Y-%m-%d %H:%M:%S.%e %n %l: %v");
  // Every line is flushed: processes of a cluster are killed, and the last lines are the ones that
  // say why.
  log->flush_on(spdlog::level::info);
  tell_of_lost_lines_once(*log, file);
  spdlog::set_default_logger(std::move(log));
}

void log_to(LogSink sink) {
  std::lock_guard lock(other_sink_lock);
  other_sink = std::move(sink);
}

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

}  // namespace cairn
