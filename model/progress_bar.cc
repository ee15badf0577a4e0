#include "model/progress_bar.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/error.h"

namespace cairn {
namespace {

constexpr std::int64_t kWidth = 30;

}  // namespace

std::string progress_bar_text(std::int64_t step, std::int64_t steps, double seconds,
                              const Logs& logs) {
  const auto filled = static_cast<std::size_t>(kWidth * step / steps);
  std::string bar(filled, '=');
  if (step < steps) bar += '>';
  bar.resize(kWidth, '.');
  char left[32];
  std::snprintf(left, sizeof left, "%.1f s left",
                seconds / static_cast<double>(std::max<std::int64_t>(step, 1)) *
                    static_cast<double>(steps - step));
  std::string text = str(step, "/", steps, " [", bar, "]  ", left);
  for (const auto& [name, value] : logs) {
    char number[40];
    std::snprintf(number, sizeof number, "%.4g", value);
    text += str("  ", name, " ", number);
  }
  return text;
}

ProgressBar::ProgressBar(ProgressBarOptions options)
    : out_(options.out == nullptr ? stdout : options.out),
      terminal_(options.always || ::isatty(::fileno(out_)) == 1),
      every_(options.every) {}

bool ProgressBar::wants_batch_logs() const {
  return terminal_ && system_clock().now() - drawn_at_ >= every_;
}

void ProgressBar::on_epoch_begin(TrainingRun&, std::int64_t) {
  began_ = drawn_at_ = system_clock().now();
}

void ProgressBar::on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs& logs) {
  if (!wants_batch_logs() || !run.writes_files()) return;
  drawn_at_ = system_clock().now();
  const double seconds = std::chrono::duration<double>(drawn_at_ - began_).count();
  wipe();
  std::fputs(progress_bar_text(step + 1, run.steps_per_epoch(), seconds, logs).c_str(), out_);
  std::fflush(out_);
  drawn_ = true;
}

void ProgressBar::on_epoch_end(TrainingRun&, std::int64_t, Logs&) { wipe(); }
void ProgressBar::on_train_end(TrainingRun&, const Logs&) { wipe(); }

void ProgressBar::wipe() {
  if (drawn_) std::fputs("\r\033[K", out_);
  drawn_ = false;
}

}  // namespace cairn
