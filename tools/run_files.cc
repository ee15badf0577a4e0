#include "tools/run_files.h"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/disk/appended_file.h"
#include "core/disk/disk.h"
#include "model/event_file.h"

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

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream in(path, std::ios::binary);
  std::getline(in, line);
  return line;
}

// Removes the lines of steps above the one from which this run goes on, which are trained again,
// and half a line.
void drop_lines_above(const std::string& path, std::int64_t step) {
  std::ifstream in(path, std::ios::binary);
  std::string kept, line;
  std::size_t all = 0;
  for (bool header = true; std::getline(in, line); header = false) {
    all += line.size() + 1;
    std::int64_t at = 0;
    const bool number =
        std::from_chars(line.data(), line.data() + line.size(), at).ec == std::errc();
    if (in.eof() || !(header || (number && at <= step))) continue;
    kept += line + "\n";
  }
  in.close();
  if (kept.size() != all) std::ofstream(path, std::ios::binary | std::ios::trunc) << kept;
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
      : path_(output.path), learning_rates_(learning_rates), metrics_(metrics) {
    header_ = "step,seconds,loss,examples_per_s";
    for (const std::string& rate : learning_rates) header_ += "," + rate;
    header_ += ",data";
    for (const std::string& metric : metrics) header_ += "," + metric;
  }

  // Whether the file can be written, and is ours to write.
  void try_it(const JobOutput& output, Earlier earlier, Overwrite overwrite) {
    const AppendedFile trial(path_, AppendedFile::Existing::kGoOn);
    if (trial.size() == 0) return;
    const std::string there = first_line(path_);
    if (earlier == Earlier::kGoOn && there == header_) {
      goes_on_ = true;
      return;
    }
    if (overwrite == Overwrite::kYes) return;
    if (!there.starts_with(kFirstColumns))
      throw AlreadyExistsError(str(output.place, " is \"", path_,
                                   "\", which is there already and is no log of a run: name "
                                   "another file, or replace it with --overwrite"));
    if (earlier == Earlier::kGoOn)
      throw FailedPreconditionError(str(output.place, " is \"", path_, "\", whose columns are ",
                                        there, ", and those of this job are ", header_,
                                        ": name another file, or replace it with --overwrite"));
  }

  void start(std::int64_t step) override {
    if (goes_on_)
      drop_lines_above(path_, step);
    else
      std::ofstream(path_, std::ios::trunc);
    file_.emplace(path_, AppendedFile::Existing::kGoOn);
    if (!goes_on_) file_->write(header_ + "\n");
  }
  void step(const Step& step) override {
    std::string line = str(step.step, ",", cell(step.seconds), ",", cell(step.loss), ",",
                           cell(step.examples_per_s));
    for (const std::string& name : learning_rates_) line += "," + value_of<float>(step.rates, name);
    file_->write(line + "," + std::string(metrics_.size(), ',') + "\n");
  }
  void evaluation(std::int64_t step, const std::string& data, const Metrics& metrics) override {
    std::string line = str(step, ",,,", std::string(learning_rates_.size(), ','), ",", data);
    for (const std::string& name : metrics_) line += "," + value_of<double>(metrics, name);
    file_->write(line + "\n");
  }

 private:
  // With as many digits as tell it from any other number of that type: rates are float32.
  template <typename Number>
  static std::string value_of(const Metrics& values, const std::string& name) {
    for (const auto& [each, value] : values)
      if (each == name) return cell(static_cast<Number>(value));
    return "";
  }

  std::string path_, header_;
  std::vector<std::string> learning_rates_, metrics_;
  bool goes_on_ = false;
  std::optional<AppendedFile> file_;
};

// ---- TensorBoard ----

class TensorBoardListener final : public RunListener {
 public:
  explicit TensorBoardListener(std::string folder) : folder_(std::move(folder)) {}

  // A write and not a look at permissions: only a write tells of quotas and full disks.
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
  EventFile& file(const std::string& name) {
    return files_.try_emplace(name, folder_ + "/" + name, first_step_).first->second;
  }

  std::string folder_;
  std::int64_t first_step_ = 0;
  std::map<std::string, EventFile> files_;
};

}  // namespace

std::unique_ptr<RunListener> csv_listener(const JobOutput& output,
                                          const std::vector<std::string>& learning_rates,
                                          const std::vector<std::string>& metrics, Earlier earlier,
                                          Overwrite overwrite) {
  auto listener = std::make_unique<CsvListener>(output, learning_rates, metrics);
  try {
    listener->try_it(output, earlier, overwrite);
  } catch (const AlreadyExistsError&) {
    throw;
  } catch (const FailedPreconditionError&) {
    throw;
  } catch (const Error&) {
    refuse(output, "name a file that can be written");
  }
  return listener;
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
