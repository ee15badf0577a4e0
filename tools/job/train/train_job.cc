#include "tools/job/train/train_job.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/disk/disk.h"
#include "tools/job/run/progress_line.h"
#include "tools/job/toml/job_words.h"
#include "tools/job/train/run_host.h"
#include "tools/job/train/train_in_process.h"
#include "tools/job/train/train_on_servers.h"
#include "tools/job/train/train_on_workers.h"
#include "tools/launch/run_folder.h"

namespace cairn::tools {
namespace {

constexpr Duration kShownEvery = std::chrono::milliseconds(250);

// A run's output as calls of a program.
class CalledOutput final : public RunOutput {
 public:
  explicit CalledOutput(const JobEvents& events) : events_(events) {}
  ~CalledOutput() override {
    if (log_) log_to(LogSink{});
  }
  CalledOutput(const CalledOutput&) = delete;
  CalledOutput& operator=(const CalledOutput&) = delete;

  bool due() const override {
    std::lock_guard hold(mutex_);
    return system_clock().now() - shown_ >= kShownEvery;
  }
  void show(const Progress& progress) override {
    std::lock_guard hold(mutex_);
    shown_ = system_clock().now();
    if (events_.progress) events_.progress(progress_text(progress));
  }
  void say(const std::string& text) override { tell(events_.say, text); }
  void warn(const std::string& text) override { tell(events_.warn, text); }
  void fail(const std::string&) override {}  // it is in the result
  void began() override {
    if (events_.began) events_.began();
  }
  void send_log_to(const std::string& file) override {
    log_ = system_disk().append(file, AppendedFile::Existing::kGoOn);
    log_to([log = log_](LogLevel, const std::string& text) {
      try {
        log->write(time_stamp("%Y-%m-%d %H:%M:%S ") + text + "\n");
      } catch (const Error&) {  // as on a full disk: the line is lost, and the run goes on
      }
    });
  }

 private:
  void tell(const std::function<void(const std::string&)>& event, const std::string& text) {
    std::lock_guard hold(mutex_);
    if (event) event(in_job_words(text));
  }

  const JobEvents& events_;
  mutable std::mutex mutex_;  // guards shown_, and the calls
  TimePoint shown_{};
  std::shared_ptr<AppendedFile> log_;
};

TrainedJob train_on(const TrainRequest& request, const RunHost& host) {
  const Job job = job_to_train(request);
  if (job.strategy.kind == "multi_worker_mirrored") return train_on_workers(request, job, host);
  if (!job.strategy.on_workers()) return train_in_process(request, host);
  return train_on_local_cluster(request, host);
}

}  // namespace

TrainedJob train_job(const TrainRequest& request, const JobEvents& events) try {
  static const std::atomic<int> never = 0;
  CalledOutput output(events);
  return train_on(request, {output, events.interrupted == nullptr ? never : *events.interrupted,
                            events.programs});
} catch (const Error&) {
  ErrorParts parts = error_parts(std::current_exception());
  parts.message = in_job_words(std::move(parts.message));
  throw_error(parts);
}

}  // namespace cairn::tools
