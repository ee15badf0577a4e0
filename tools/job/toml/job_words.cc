#include "tools/job/toml/job_words.h"

#include <array>
#include <string_view>

namespace cairn::tools {
namespace {

struct Word {
  std::string_view cpp, job;
  std::string_view command = {};  // where a command that reads a model's files has another
};

// A longer name stands before one that it begins with.
constexpr std::array kWords{
    Word{"OnError::kSkipAndCount", "data.skip_bad_rows = true", "--skip-bad-rows"},
    Word{"EmptyFiles::kSkip", "data.empty_files = \"skip\""},
    Word{"CsvSchema::quote = 0", "data.csv.quote = \"\""},
    Word{"CsvSchema::cell_lines_max", "data.csv.cell_lines_max"},
    Word{"CsvSchema::strict", "data.csv.strict"},
    Word{"CsvColumn::unknown", "\"unknown\" of its table in data.csv.columns"},
    Word{"CsvColumn::default_value", "\"default\""},
    Word{"CsvColumn::date_format", "a dtype such as \"date:%Y-%m-%d\""},
    Word{"CsvColumn::ids", "features.ids"},
    Word{"RecordField::ids", "features.ids"},
    Word{"ExampleFeature::ids", "features.ids"},
    Word{"ExampleFeature::default_value", "\"default\" in data.tfrecords.features"},
    Word{"LibsvmSchema::label", "data.libsvm.label"},
    Word{"LibsvmSchema::qid", "data.group"},
    Word{"LibsvmSchema::zero_based", "data.libsvm.zero_based"},
    Word{"LibsvmSchema::dimension", "data.libsvm.dimension"},
    Word{"TfRecordOptions::record_bytes_max", "the longest that is read"},
    Word{"restore with RestoreOptions::new_data", "give --new-data"},
    Word{"RestoreOptions::exclude", "warm_start.exclude"},
    Word{" (C++: EngineOptions::take_over)", ""},
};

}  // namespace

std::string in_job_words(std::string text, Speaker speaker) {
  for (const auto& [cpp, job, command] : kWords) {
    const std::string_view word =
        speaker == Speaker::kModelCommand && !command.empty() ? command : job;
    for (std::size_t at = text.find(cpp); at != text.npos; at = text.find(cpp, at + word.size()))
      text.replace(at, cpp.size(), word);
  }
  return text;
}

}  // namespace cairn::tools
