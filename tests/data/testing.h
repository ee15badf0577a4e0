// Helpers of this room's tests: files that go away, and elements as text that compare and
// print.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"

namespace cairn::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cairn_data_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  std::string write(const std::string& name, const std::string& text) const {
    std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string to_text(const Element& element) {
  std::string text;
  for (const auto& column : element) {
    if (column.dtype() != DType::kString) {
      text += column.to_string(1 << 20) + " ";
      continue;
    }
    text += column.type().to_string() + "{";
    for (const std::string& value : column.string_values()) text += "\"" + value + "\"";
    text += "} ";
  }
  return text;
}

inline std::vector<std::string> rest_of(DatasetIterator& iterator, std::size_t most = 1000) {
  std::vector<std::string> all;
  while (all.size() < most) {
    auto element = iterator.next();
    if (!element) break;
    all.push_back(to_text(*element));
  }
  return all;
}

inline std::vector<std::string> read_all(const Dataset& dataset, std::size_t most = 1000) {
  return rest_of(*open(dataset), most);
}

// The int64 values of the first column, all elements together.
inline std::vector<std::int64_t> values_of(const Dataset& dataset) {
  std::vector<std::int64_t> all;
  auto iterator = open(dataset);
  while (auto element = iterator->next()) {
    auto values = element->front().values<std::int64_t>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(code_name(error.code())) + ": " + error.what();
  }
  return "no error";
}

}  // namespace cairn::testing
