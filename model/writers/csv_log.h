// CsvLog: a table that grows by whole lines while others read it, such as one of a training run. A
// run that goes on after a restart keeps the lines that it will not write again.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

class AppendedFile;  // core/disk/appended_file.h

// Thread: one; calls may block.
class CsvLog {
 public:
  // Opens the file and keeps what it holds; makes it if it is missing.
  //   Errors  those of AppendedFile.
  explicit CsvLog(std::string path, std::string separator = ",");
  ~CsvLog();

  std::uint64_t bytes() const;
  std::string first_line() const;  // without its end; empty: there is none
  // Only the first `bytes` stay.
  void cut(std::uint64_t bytes);
  // The first line stays, and those that are `wanted`; half a line at the end goes.
  void keep(const std::function<bool(std::string_view line)>& wanted);
  // Adds a line. Cells are written as they are.
  //   Errors  those of AppendedFile::write(); the line is then left out.
  void write(const std::vector<std::string>& cells);
  std::string line_of(const std::vector<std::string>& cells) const;  // without its end

 private:
  const std::string path_, separator_;
  std::unique_ptr<AppendedFile> file_;  // opened anew whenever the file was made shorter
};

}  // namespace cairn
