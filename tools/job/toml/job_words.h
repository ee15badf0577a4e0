// The words of a job. The rooms below know options by their C++ names, and their messages name the
// option that would mend the error; but a user of jobs knows keys of the file and flags.
//
//   "... leave such lines out with OnError::kSkipAndCount"
//   "... leave such lines out with data.skip_bad_rows = true"
//
// Applied where a message leaves for a terminal, a log or a report, so that it holds for messages
// from other processes, too. tests/tools/job/toml/job_words_test.cc goes through the literals of
// the rooms that jobs use: a message with a C++ name that has no word here fails it.
#pragma once
#include <cstdint>
#include <string>

namespace cairn::tools {

// A command that reads a model's files has a flag where a job file has a key.
enum class Speaker : std::uint8_t { kJob, kModelCommand };

std::string in_job_words(std::string text, Speaker speaker = Speaker::kJob);

}  // namespace cairn::tools
