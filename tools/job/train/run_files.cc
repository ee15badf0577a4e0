#include "tools/job/train/run_files.h"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "model/writers/csv_log.h"
#include "model/writers/event_file.h"

namespace cairn::tools {
namespace {

// Throws the current error again, as the same class, with the job file's key and the cure in its
// message.
[[noreturn]] void refuse(const JobOutput& output, const char* cure) {
  ErrorParts parts = error_parts(std::current_exception());
  parts.message = str(output.place, " is \"", output.path, "\": ", parts.message, "; ", cure);
  throw_error(parts);
}

// ---- CSV ----

constexpr const char* kFirstColumns = "step,seconds,loss,examples_per_s,learning_rate";

// Whether a line of a run that goes on behind `step` stays: those above it are trained again.
bool is_behind(std::string_view line, std::int64_t step) {
  std::int64_t at = 0;
  return std::from_chars(line.data(), line.data() + line.size(), at).ec == std::errc() &&
         at <= step;
}

template <typename Number>
std::string cell(Number value) {
  if (!std::isfinite(value)) return "";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

class CsvListener final : public RunListener {
 public:
  CsvListener(const JobOutput& output, const std::vector<std::string>& learning_rates,
              const std::vector<std::string>& metrics)
      : log_(output.path), learning_rates_(learning_rates), metrics_(metrics) {
    header_ = {"step", "seconds", "loss", "examples_per_s"};
    header_.insert(header_.end(), learning_rates.begin(), learning_rates.end());
    header_.emplace_back("data");
    header_.insert(header_.end(), metrics.begin(), metrics.end());
  }

  // Whether the file, which can be written, is ours to write.
  void try_it(const JobOutput& output, Earlier earlier, Overwrite overwrite) {
    if (log_.bytes() == 0) return;
    const std::string there = log_.first_line(), wanted = log_.line_of(header_);
    if (earlier == Earlier::kGoOn && there == wanted) {
      goes_on_ = true;
      return;
    }
    if (overwrite == Overwrite::kYes) return;
    if (!there.starts_with(kFirstColumns))
      throw AlreadyExistsError(str(output.place, " is \"", output.path,
                                   "\", which is there already and is no log of a run: name "
                                   "another file, or replace it with --overwrite"));
    if (earlier == Earlier::kGoOn)
      throw FailedPreconditionError(str(output.place, " is \"", output.path,
                                        "\", whose columns are ", there,
                                        ", and those of this job are ", wanted,
                                        ": name another file, or replace it with --overwrite"));
  }

  void start(std::int64_t step) override {
    if (goes_on_) return log_.keep([step](std::string_view line) { return is_behind(line, step); });
    log_.cut(0);
    log_.write(header_);
  }
  void step(const Step& step) override {
    std::vector<std::string> cells{std::to_string(step.step), cell(step.seconds), cell(step.loss),
                                   cell(step.examples_per_s)};
    for (const std::string& name : learning_rates_)
      cells.push_back(value_of<float>(step.rates, name));
    cells.resize(header_.size());
    log_.write(cells);
  }
  void evaluation(std::int64_t step, const std::string& data, const Metrics& metrics) override {
    std::vector<std::string> cells(header_.size() - metrics_.size() - 1);
    cells.front() = std::to_string(step);
    cells.push_back(data);
    for (const std::string& name : metrics_) cells.push_back(value_of<double>(metrics, name));
    log_.write(cells);
  }

 private:
  // With as many digits as tell it from any other number of that type: rates are float32.
  template <typename Number>
  static std::string value_of(const Metrics& values, const std::string& name) {
    for (const auto& [each, value] : values)
      if (each == name) return cell(static_cast<Number>(value));
    return "";
  }

  CsvLog log_;
  std::vector<std::string> learning_rates_, metrics_, header_;
  bool goes_on_ = false;
};

// ---- TensorBoard ----

class TensorBoardListener final : public RunListener {
 public:
  explicit TensorBoardListener(std::string folder) : folder_(std::move(folder)), files_(folder_) {}

  // A write and not a look at permissions: only a write finds quotas and full disks.
  void try_it() const {
    Disk& disk = system_disk();
    disk.make_folder(folder_ + "/train");
    const std::string probe = str(folder_, "/train/.cairn-probe-", ::getpid());
    disk.write_atomically(probe, " ");
    disk.remove(probe);
  }

  void start(std::int64_t step) override {
    first_step_ = step == 0 ? 0 : step + 1;
    file("train").flush();
  }
  void step(const Step& step) override {
    EventFile& train = file("train");
    if (std::isfinite(step.loss)) train.scalar("loss", step.loss, step.step);
    if (std::isfinite(step.examples_per_s))
      train.scalar("examples_per_s", step.examples_per_s, step.step);
    for (const auto& [name, rate] : step.rates) train.scalar(name, rate, step.step);
    train.flush();
  }
  void evaluation(std::int64_t step, const std::string& data, const Metrics& metrics) override {
    for (const auto& [name, value] : metrics) file(data).scalar(name, value, step);
    file(data).flush();
  }

 private:
  EventFile& file(const std::string& name) { return files_.file(name, first_step_); }

  std::string folder_;
  EventFiles files_;
  std::int64_t first_step_ = 0;
};

}  // namespace

std::unique_ptr<RunListener> csv_listener(const JobOutput& output,
                                          const std::vector<std::string>& learning_rates,
                                          const std::vector<std::string>& metrics, Earlier earlier,
                                          Overwrite overwrite) {
  try {
    auto listener = std::make_unique<CsvListener>(output, learning_rates, metrics);
    listener->try_it(output, earlier, overwrite);
    return listener;
  } catch (const AlreadyExistsError&) {
    throw;
  } catch (const FailedPreconditionError&) {
    throw;
  } catch (const Error&) {
    refuse(output, "name a file that can be written");
  }
}

std::unique_ptr<RunListener> tensorboard_listener(const JobOutput& output) {
  auto listener = std::make_unique<TensorBoardListener>(output.path);
  try {
    listener->try_it();
  } catch (const Error&) {
    refuse(output, "name a folder that can be written");
  }
  return listener;
}

}  // namespace cairn::tools
