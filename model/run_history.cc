#include "model/run_history.h"

#include <utility>

namespace cairn {
namespace {

constexpr Duration kOften = std::chrono::milliseconds(100), kOftenFor = std::chrono::seconds(10),
                   kSeldom = std::chrono::seconds(1);
constexpr double kRateOver = 0.05;  // seconds: of less, a rate is chance

}  // namespace

RunHistory::RunHistory(const std::string& folder, const Clock& clock)
    : clock_(clock),
      file_(folder + "/" + kFile, AppendedFile::Existing::kGoOn),
      began_(clock.now()),
      last_at_(began_) {
  // A machine that lost power may have left half a line: what follows must not become a part of it.
  if (file_.size() > 0) file_.write("\n");
}

void RunHistory::write(const Json& line) { file_.write(json_text(line) + "\n"); }

void RunHistory::start(std::int64_t step) { write({{"kind", "start"}, {"step", step}}); }

bool RunHistory::due() const {
  const TimePoint now = clock_.now();
  return now - last_at_ >= (now - began_ < kOftenFor ? kOften : kSeldom);
}

void RunHistory::step(const Step& step) {
  last_at_ = clock_.now();
  const Step& from = step.seconds - last_.seconds < kRateOver ? before_last_ : last_;
  const double seconds = step.seconds - from.seconds;
  const double rate = static_cast<double>(step.examples - from.examples) / seconds;
  before_last_ = std::exchange(last_, step);
  write({{"kind", "step"},
         {"step", step.step},
         {"seconds", step.seconds},
         {"loss", step.loss},
         {"examples_per_s", seconds > 0 ? Json(rate) : Json(nullptr)},
         {"staleness", step.staleness ? Json(*step.staleness) : Json(nullptr)}});
}

void RunHistory::evaluation(std::int64_t step, const std::string& data,
                            const std::vector<std::pair<std::string, double>>& metrics) {
  Json values = Json::object();
  for (const auto& [name, value] : metrics) values[name] = value;
  write({{"kind", "evaluation"}, {"step", step}, {"data", data}, {"metrics", std::move(values)}});
}

}  // namespace cairn
