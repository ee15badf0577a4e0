// Every input that fuzzing has kept, through the same code, in every build.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/targets.h"

namespace cairn::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> corpus_of(std::string_view target) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path("tests/fuzz/corpus") / target))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<char> bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class Corpus : public ::testing::TestWithParam<Target> {};

TEST_P(Corpus, IsReadOrRefused) {
  const auto files = corpus_of(GetParam().name);
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) {
    SCOPED_TRACE(file.string());
    const std::vector<char> bytes = bytes_of(file);
    EXPECT_NO_THROW(GetParam().run(std::as_bytes(std::span(bytes))));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Corpus, ::testing::ValuesIn(kTargets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cairn::fuzz
