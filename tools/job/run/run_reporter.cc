#include "tools/job/run/run_reporter.h"

#include "core/base/error.h"
#include "tools/job/run/latest_progress.h"

namespace cairn::tools {

void RunReporter::tell(const std::function<void(RunListener&)>& one) {
  std::erase_if(listeners_, [&](const auto& listener) {
    try {
      one(*listener.second);
      return false;
    } catch (const Error& error) {
      say_(str("warning: ", listener.first, " is not kept any more: ", error.what()));
      return true;
    }
  });
}

void RunReporter::start(std::int64_t step) {
  tell([step](RunListener& each) { each.start(step); });
}

void RunReporter::step(const RunHistory::Step& step, RunListener::Metrics rates) {
  pace_.told();
  const RunListener::Step told{step, rate_.at(step.seconds, step.examples), std::move(rates)};
  tell([&told](RunListener& each) { each.step(told); });
}

void RunReporter::evaluation(std::int64_t step, const std::string& data,
                             const RunListener::Metrics& metrics) {
  tell([&](RunListener& each) { each.evaluation(step, data, metrics); });
}

namespace {

class HistoryListener final : public RunListener {
 public:
  explicit HistoryListener(const std::string& run_dir) : history_(run_dir) {}
  void start(std::int64_t step) override { history_.start(step); }
  void step(const Step& step) override { history_.step(step); }
  void evaluation(std::int64_t step, const std::string& data, const Metrics& metrics) override {
    history_.evaluation(step, data, metrics);
  }

 private:
  RunHistory history_;
};

class StatusListener final : public RunListener {
 public:
  explicit StatusListener(StepRunner& runner) : runner_(runner) {}
  void step(const Step& step) override {
    newest_.training(step.step, step.loss, step.examples_per_s);
    runner_.set_program_status(json_text(newest_.json()));
  }
  void evaluation(std::int64_t step, const std::string& data, const Metrics& metrics) override {
    Json values = Json::object();
    for (const auto& [name, value] : metrics) values[name] = value;
    newest_.evaluation(step, data, std::move(values));
    runner_.set_program_status(json_text(newest_.json()));
  }

 private:
  StepRunner& runner_;
  LatestProgress newest_;
};

}  // namespace

std::unique_ptr<RunListener> history_listener(const std::string& run_dir) {
  return std::make_unique<HistoryListener>(run_dir);
}

std::unique_ptr<RunListener> status_listener(StepRunner& runner) {
  return std::make_unique<StatusListener>(runner);
}

}  // namespace cairn::tools
