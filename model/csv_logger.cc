#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "model/callbacks.h"
#include "model/writers/csv_log.h"

namespace cairn {
namespace {

// The cells of a first line but that of "epoch".
std::vector<std::string> columns_of(const std::string& head, const std::string& separator) {
  std::vector<std::string> columns;
  for (std::size_t from = head.find(separator); from != std::string::npos;) {
    from += separator.size();
    const std::size_t to = head.find(separator, from);
    columns.push_back(head.substr(from, to - from));
    from = to;
  }
  return columns;
}

std::string all_digits(double value) {
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::max_digits10);
  out << value;
  return out.str();
}

void write_line(CsvLog& log, std::string first, const std::vector<std::string>& others,
                const std::string& path) {
  std::vector<std::string> cells{std::move(first)};
  cells.insert(cells.end(), others.begin(), others.end());
  try {
    log.write(cells);
  } catch (const Error&) {
    throw ResourceExhaustedError(str("CSVLogger: cannot write to ", path));
  }
}

}  // namespace

CSVLogger::CSVLogger(std::string path, CSVLoggerOptions options)
    : path_(std::move(path)), options_(std::move(options)) {}
CSVLogger::~CSVLogger() = default;

// Whether the file can be written is known at the start. What stays of it is not: a backup may say.
void CSVLogger::on_train_begin(TrainingRun& run) {
  if (!run.writes_files()) return;
  columns_.clear();
  try {
    log_ = std::make_unique<CsvLog>(path_, options_.separator);
  } catch (const Error&) {
    throw NotFoundError(str("CSVLogger: cannot write the file ", path_));
  }
  kept_ = options_.append ? log_->bytes() : 0;
}

void CSVLogger::begin_lines(TrainingRun& run, const Logs& logs) {
  log_->cut(kept_);
  if (kept_ > 0) columns_ = columns_of(log_->first_line(), options_.separator);
  if (!columns_.empty()) return;
  std::set<std::string> names;
  for (const std::string& name : run.log_names()) names.insert(name);
  for (const auto& [name, value] : logs) names.insert(name);
  columns_.assign(names.begin(), names.end());
  write_line(*log_, "epoch", columns_, path_);
}

void CSVLogger::on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) {
  if (!log_) return;
  if (columns_.empty()) begin_lines(run, logs);
  for (const auto& [name, value] : logs)
    if (std::ranges::count(columns_, name) == 0)
      throw FailedPreconditionError(str("CSVLogger: the file ", path_, " has no column \"", name,
                                        "\", which the logs have: write to another file"));
  std::vector<std::string> cells;
  for (const std::string& column : columns_) {
    const auto found = logs.find(column);
    cells.push_back(found == logs.end() ? "NA" : all_digits(found->second));
  }
  write_line(*log_, std::to_string(epoch), cells, path_);
}

void CSVLogger::on_train_end(TrainingRun&, const Logs&) { log_.reset(); }

// How many bytes of the file are lines of epochs that a backup has behind it.
std::optional<CallbackState> CSVLogger::state() const {
  if (!log_) return CallbackState{"0"};
  return CallbackState{std::to_string(columns_.empty() ? kept_ : log_->bytes())};
}

void CSVLogger::restore_state(const CallbackState& saved) {
  if (!log_) return;
  kept_ = std::stoull(saved.text);
  const std::uint64_t there = log_->bytes();
  if (there >= kept_) return;
  log_warning("CSVLogger: ", path_, " has ", there, " bytes, and had ", kept_,
              " when the backup was made: it is written anew, from this epoch on");
  kept_ = 0;
}

}  // namespace cairn
