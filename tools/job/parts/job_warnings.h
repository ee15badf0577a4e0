// Warnings of what a job does that is allowed and seldom meant, and messages about lines that its
// data files lack.
#pragma once
#include <string>
#include <vector>

#include "tools/job/parts/job_model.h"
#include "tools/job/toml/job_words.h"

namespace cairn::tools {

// Adam updates every row of every table at each step: one line for each part of the model that has
// a table of more than 100,000 rows under it.
std::vector<std::string> optimizer_warnings(const Job& job, const FittedFeatures& features);

// One line where replicas take every step together and a step is so little work for each that
// synchronising them costs more. Of the kinds wide, deep and wide_deep.
std::vector<std::string> in_step_warnings(const Job& job, const FittedFeatures& features);

// Which files of `key` ("data.train") had no rows and were passed over; empty: none.
std::string empty_files_text(const LinesRead& lines, const std::string& key);
// How many lines of `key` were left out by the option that the speaker knows, and the first five of
// them; empty: none were.
std::string skipped_rows_text(const LinesRead& lines, const std::string& key,
                              Speaker speaker = Speaker::kJob);
// Both, each on lines of its own; empty: neither.
std::string passed_over_text(const LinesRead& lines, const std::string& key,
                             Speaker speaker = Speaker::kJob);
// ", 3 rows left out by conditions, 2 without a label": what else was left out; empty: nothing was.
std::string left_out_text(const LinesRead& lines);

}  // namespace cairn::tools
