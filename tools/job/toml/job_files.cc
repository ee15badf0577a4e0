#include "tools/job/toml/job_files.h"

#include <filesystem>

#include "core/base/error.h"
#include "data/dataset/dataset.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

namespace fs = std::filesystem;

// Files are named relative to the job file, not to the working folder: a job and its data move
// together.
std::string beside(const std::string& file, const std::string& path) {
  if (!fs::path(path).is_relative()) return path;
  return fs::absolute(fs::path(file)).parent_path().append(path).lexically_normal().string();
}

// A file of just this name is no pattern, and no pattern holds a zero byte, at which it would end.
bool is_pattern(const std::string& name, const std::string& path) {
  std::error_code ignored;
  return name.find_first_of("*?[") != name.npos && name.find('\0') == name.npos &&
         !fs::exists(path, ignored);
}

// A pattern beside the job file. The folder's name is not part of it, whatever it holds.
std::string pattern_beside(const std::string& file, const std::string& pattern) {
  if (!fs::path(pattern).is_relative()) return pattern;
  std::string escaped;
  for (const char one : fs::absolute(fs::path(file)).parent_path().string()) {
    if (one == '*' || one == '?' || one == '[' || one == '\\') escaped += '\\';
    escaped += one;
  }
  return escaped + "/" + pattern;
}

}  // namespace

void read_files(TomlTable& table, const std::string& key, std::vector<std::string>& files) {
  std::vector<std::string> given;
  table.read(key, given);
  for (const std::string& each : given) {
    if (each == "-")
      throw InvalidArgumentError(str(table.place(*table.node(key)), ": ", table.path(key),
                                     ": \"-\" would be standard input, which can be read only ",
                                     "once, and a job reads its data several times: name a file"));
    const std::string path = beside(table.file(), each);
    if (!is_pattern(each, path)) {
      files.push_back(path);
      continue;
    }
    try {
      for (const std::string& found : list_files(pattern_beside(table.file(), each)))
        files.push_back(fs::path(found).lexically_normal().string());
    } catch (const NotFoundError&) {
      throw NotFoundError(str(table.place(*table.node(key)), ": ", table.path(key),
                              ": there is no file \"", each, "\" (", path, ")"));
    }
  }
}

}  // namespace cairn::tools
