#include "tools/job/run/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "tools/job/toml/job_words.h"

namespace cairn::tools {
namespace {

// Often enough to look alive on a terminal, seldom enough to read in a file.
constexpr Duration kLiveEvery = std::chrono::milliseconds(250),
                   kPlainEvery = std::chrono::seconds(5);
constexpr std::size_t kColumns = 80;  // of a terminal that does not say

// Asked each time: windows change their size.
std::size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kColumns;
}

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  char text[160];
  const int n = std::snprintf(text, sizeof text, format, values...);
  return {text, static_cast<std::size_t>(std::clamp<int>(n, 0, sizeof text - 1))};
}

}  // namespace

// Parts stand in the order in which they are read and are left out in the order of their ranks, so
// that a narrow window keeps the step and the loss.
std::string progress_text(const Progress& p, std::size_t columns) {
  struct Part {
    std::string text;
    int rank;  // the highest goes first
  };
  std::vector<Part> parts{
      {formatted("step %lld/%lld", static_cast<long long>(p.step), static_cast<long long>(p.steps)),
       0},
      {formatted("%.0f examples/s", p.examples_per_s), 2},
      {formatted("loss %.4f", p.loss), 1}};
  if (!p.metric.empty())
    parts.push_back({formatted("%s %.4f", p.metric.c_str(), p.metric_value), 4});
  if (p.ps > 0) {
    parts.push_back({formatted("staleness %.1f", p.staleness), 6});
    parts.push_back(
        {formatted("workers %u/%u  ps %u/%u", p.workers_up, p.workers, p.ps_up, p.ps), 5});
  }
  if (p.replicas > 1) parts.push_back({formatted("replicas %u", p.replicas), 5});
  if (p.held > 0)
    parts.push_back(
        {formatted("collectives %.0f %%, waiting %.0f %%", 100 * p.held, 100 * p.waited), 6});
  if (!p.gpus.empty()) parts.push_back({p.gpus, 5});
  if (p.seconds_left >= 0) {
    const auto left = static_cast<long long>(p.seconds_left + 0.5);
    parts.push_back({formatted("%lld:%02lld left", left / 60, left % 60), 3});
  }
  for (;;) {
    std::string line;
    for (const Part& part : parts) line += (line.empty() ? "" : "  ") + part.text;
    if (line.size() <= columns || parts.size() == 1) return line.substr(0, columns);
    parts.erase(std::max_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.rank < b.rank; }));
  }
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

ProgressLine::~ProgressLine() { end(); }

void ProgressLine::end() {
  std::lock_guard hold(mutex_);
  if (std::exchange(live_, false)) std::fputs("\n", stdout);
  std::fflush(stdout);
}

bool ProgressLine::due() const {
  std::lock_guard hold(mutex_);
  return system_clock().now() - last_ >= (terminal_ ? kLiveEvery : kPlainEvery);
}

void ProgressLine::show(const Progress& progress) {
  std::lock_guard hold(mutex_);
  last_ = system_clock().now();
  // The last column stays free: some terminals wrap as soon as it is filled.
  const std::string text =
      terminal_ ? progress_text(progress, terminal_columns() - 1) : progress_text(progress);
  // Back to the first column, and clear to the end of the line (ECMA-48, EL): a shorter line leaves
  // nothing of a longer one.
  std::printf(terminal_ ? "\r\x1b[K%s" : "%s\n", text.c_str());
  std::fflush(stdout);
  live_ = terminal_;
}

// Clears the live line, prints above it, and lets the next show() draw it again.
void ProgressLine::say(const std::string& text) {
  std::lock_guard hold(mutex_);
  std::printf(live_ ? "\r\x1b[K%s\n" : "%s\n", in_job_words(text).c_str());
  std::fflush(stdout);
  live_ = false;
  if (terminal_) last_ = {};  // the live line comes back with the next look
}

// The live line ends where it is, so that what stands below it is whole.
void ProgressLine::warn(const std::string& text) {
  end();
  std::fprintf(stderr, "%s\n", text.c_str());
}

void ProgressLine::fail(const std::string& text) {
  warn(str(program_invocation_short_name, ": ", text));
}

void ProgressLine::send_log_to(const std::string& file) { log_to(file, "cairn"); }

}  // namespace cairn::tools
