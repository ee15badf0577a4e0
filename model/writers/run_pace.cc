#include "model/writers/run_pace.h"

#include <limits>
#include <utility>

namespace cairn {
namespace {

constexpr Duration kOften = std::chrono::milliseconds(100), kOftenFor = std::chrono::seconds(10),
                   kSeldom = std::chrono::seconds(1);
constexpr double kRateOver = 0.05;  // seconds: of less, a rate is chance

}  // namespace

RunPace::RunPace(const Clock& clock) : clock_(clock), began_(clock.now()), last_at_(began_) {}

bool RunPace::due() const {
  const TimePoint now = clock_.now();
  return now - last_at_ >= (now - began_ < kOftenFor ? kOften : kSeldom);
}

double ExamplesRate::at(double seconds, std::int64_t examples) {
  const Moment from = seconds - last_.seconds < kRateOver ? before_last_ : last_;
  before_last_ = std::exchange(last_, {seconds, examples});
  const double passed = seconds - from.seconds;
  if (passed <= 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(examples - from.examples) / passed;
}

}  // namespace cairn
