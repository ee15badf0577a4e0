#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "model/callbacks.h"

namespace cairn {
namespace {

std::vector<std::string> columns_of(const std::string& path, const std::string& separator) {
  std::string head;
  std::ifstream in(path);
  std::getline(in, head);
  std::vector<std::string> columns;  // without "epoch"
  for (std::size_t from = head.find(separator); from != std::string::npos;) {
    from += separator.size();
    const std::size_t to = head.find(separator, from);
    columns.push_back(head.substr(from, to - from));
    from = to;
  }
  return columns;
}

}  // namespace

struct CSVLogger::File {
  std::ofstream out;                 // open from the first line on
  std::vector<std::string> columns;  // without "epoch"; empty: no line was written
  std::uintmax_t begin = 0;          // bytes of the file that stay, before the first line
};

CSVLogger::CSVLogger(std::string path, CSVLoggerOptions options)
    : path_(std::move(path)), options_(std::move(options)) {}
CSVLogger::~CSVLogger() = default;

// Whether the file can be written is known at the start. What stays of it is not: a backup may say.
void CSVLogger::on_train_begin(TrainingRun& run) {
  if (!run.writes_files()) return;
  file_ = std::make_unique<File>();
  if (!std::ofstream(path_, std::ios::app))
    throw NotFoundError(str("CSVLogger: cannot write the file ", path_));
  if (options_.append) file_->begin = std::filesystem::file_size(path_);
}

void CSVLogger::open() {
  std::filesystem::resize_file(path_, file_->begin);
  if (file_->begin > 0) file_->columns = columns_of(path_, options_.separator);
  file_->out.open(path_, std::ios::app);
}

void CSVLogger::on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) {
  if (!file_) return;
  if (!file_->out.is_open()) open();
  if (file_->columns.empty()) {
    std::set<std::string> names;
    for (const std::string& name : run.log_names()) names.insert(name);
    for (const auto& [name, value] : logs) names.insert(name);
    file_->columns.assign(names.begin(), names.end());
    file_->out << "epoch";
    for (const std::string& name : names) file_->out << options_.separator << name;
    file_->out << '\n';
  }
  for (const auto& [name, value] : logs)
    if (std::ranges::count(file_->columns, name) == 0)
      throw FailedPreconditionError(str("CSVLogger: the file ", path_, " has no column \"", name,
                                        "\", which the logs have: write to another file"));
  file_->out.precision(std::numeric_limits<double>::max_digits10);
  file_->out << epoch;
  for (const std::string& column : file_->columns) {
    file_->out << options_.separator;
    const auto found = logs.find(column);
    if (found == logs.end())
      file_->out << "NA";
    else
      file_->out << found->second;
  }
  file_->out << std::endl;
  if (!file_->out) throw ResourceExhaustedError(str("CSVLogger: cannot write to ", path_));
}

void CSVLogger::on_train_end(TrainingRun&, const Logs&) { file_.reset(); }

// How many bytes of the file are lines of epochs that a backup has behind it.
std::optional<CallbackState> CSVLogger::state() const {
  if (!file_) return CallbackState{"0"};
  const std::uintmax_t bytes =
      file_->out.is_open() ? std::filesystem::file_size(path_) : file_->begin;
  return CallbackState{std::to_string(bytes)};
}

void CSVLogger::restore_state(const CallbackState& saved) {
  if (!file_) return;
  file_->begin = std::stoull(saved.text);
  const std::uintmax_t there = std::filesystem::file_size(path_);
  if (there >= file_->begin) return;
  log_warning("CSVLogger: ", path_, " has ", there, " bytes, and had ", file_->begin,
              " when the backup was made: it is written anew, from this epoch on");
  file_->begin = 0;
}

}  // namespace cairn
