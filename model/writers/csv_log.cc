#include "model/writers/csv_log.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "core/disk/disk.h"

namespace cairn {
namespace {

std::unique_ptr<AppendedFile> opened(const std::string& path) {
  return system_disk().append(path, AppendedFile::Existing::kGoOn);
}

}  // namespace

CsvLog::CsvLog(std::string path, std::string separator)
    : path_(std::move(path)), separator_(std::move(separator)), file_(opened(path_)) {}
CsvLog::~CsvLog() = default;

std::uint64_t CsvLog::bytes() const { return file_->size(); }

std::string CsvLog::first_line() const {
  std::string line;
  std::ifstream in(path_, std::ios::binary);
  std::getline(in, line);
  return line;
}

void CsvLog::cut(std::uint64_t bytes) {
  std::filesystem::resize_file(path_, bytes);
  file_ = opened(path_);
}

void CsvLog::keep(const std::function<bool(std::string_view line)>& wanted) {
  std::ifstream in(path_, std::ios::binary);
  std::string kept, line;
  for (bool first = true; std::getline(in, line); first = false)
    if (!in.eof() && (first || wanted(line))) kept += line + "\n";
  in.close();
  if (kept.size() == bytes()) return;
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << kept;
  file_ = opened(path_);
}

void CsvLog::write(const std::vector<std::string>& cells) { file_->write(line_of(cells) + "\n"); }

std::string CsvLog::line_of(const std::vector<std::string>& cells) const {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? separator_ : "") + cells[i];
  return line;
}

}  // namespace cairn
