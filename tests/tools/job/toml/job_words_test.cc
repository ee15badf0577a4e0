// Messages about a job name its keys and flags, and no names of C++.
#include "tools/job/toml/job_words.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace cairn::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

// Names in messages of calls that no job makes.
const std::set<std::string> kOutOfReach{
    "CacheOptions::bytes_max",
    "CacheOptions::file",
    "kAutotune",
    "AutoShardPolicy::kFile",
    "AutoShardPolicy::kHint",
    "kAuto",
    "kData",
    "kHint",
    "kOff",
    "Dataset::csv",
    "Dataset::map",
    "Model::evaluate",
    "OpenOptions::open_elements",
    "OpenOptions::prefetch_deadline",
    "service::distribute",
};

// The texts in quotes of a source file, of which those that stand side by side are one.
std::vector<std::string> literals_of(const std::string& source) {
  std::vector<std::string> all;
  bool joined = false;  // nothing but blanks since the last one
  for (std::size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (source.compare(i, 2, "//") == 0 || (c == '#' && source.compare(i, 8, "#include") == 0)) {
      i = std::min(source.find('\n', i), source.size());
    } else if (c == '\'' && i > 0 && !std::isalnum(static_cast<unsigned char>(source[i - 1]))) {
      i += source[i + 1] == '\\' ? 3 : 2;
      joined = false;
    } else if (c == '"') {
      std::string text;
      for (++i; i < source.size() && source[i] != '"'; ++i) {
        text += source[i];
        if (source[i] == '\\') text += source[++i];
      }
      if (joined)
        all.back() += text;
      else
        all.push_back(text);
      joined = true;
    } else if (!std::isspace(static_cast<unsigned char>(c))) {
      joined = false;
    }
  }
  return all;
}

std::vector<std::string> cpp_words_in(const std::string& text) {
  static const std::regex names(R"(\w+::\w+|\bk[A-Z]\w+)");
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), names), end; at != end; ++at)
    if (!kOutOfReach.contains(at->str())) found.push_back(at->str());
  return found;
}

TEST(JobWords, HaveOneForEachNameOfCppInMessagesAboutDataAndJobs) {
  std::vector<std::string> left;
  std::size_t literals = 0;
  for (const char* room : {"data", "tools"})
    for (const auto& file : fs::recursive_directory_iterator(room)) {
      const fs::path path = file.path();
      if ((path.extension() != ".cc" && path.extension() != ".h") || path.stem() == "job_words")
        continue;
      std::stringstream source;
      source << std::ifstream(path).rdbuf();
      for (const std::string& literal : literals_of(source.str())) {
        ++literals;
        for (const Speaker speaker : {Speaker::kJob, Speaker::kModelCommand})
          for (const std::string& word : cpp_words_in(in_job_words(literal, speaker)))
            left.push_back(path.string() + ": " + word + " in \"" + literal + "\"");
      }
    }
  EXPECT_GT(literals, 2000u);
  EXPECT_THAT(left, IsEmpty());
}

TEST(JobWords, AreFoundInsideOfLiteralsAlone) {
  EXPECT_EQ(literals_of("f(\"a \\\" b\" // \"c\"\n  \"d\", '\"', 1'000, \"e\");"),
            (std::vector<std::string>{"a \\\" bd", "e"}));
  EXPECT_EQ(cpp_words_in("see OnError::kFail or kSkip, 12:30 and ::"),
            (std::vector<std::string>{"OnError::kFail", "kSkip"}));
}

TEST(JobWords, OfACommandThatReadsAModelsFilesAreItsFlags) {
  const std::string text = "leave such lines out with OnError::kSkipAndCount";
  EXPECT_EQ(in_job_words(text), "leave such lines out with data.skip_bad_rows = true");
  EXPECT_EQ(in_job_words(text, Speaker::kModelCommand),
            "leave such lines out with --skip-bad-rows");
}

}  // namespace
}  // namespace cairn::tools
