// The complaints about a bad line of a CSV file; each names the option that would cure it. Jobs
// replace the option by their own key (tools/job/toml/job_words.h).
#pragma once
#include <string>
#include <string_view>

#include "data/dataset/schema.h"
#include "data/file/csv_quotes.h"

namespace cairn {

// "mend the line, or leave such lines out with ...": ends the message about any line that ends the
// run.
std::string line_cure();
// The fault of a quote, and the options of the schema that would allow it.
std::string quote_complaint(QuoteFault::Kind kind, const CsvSchema& schema);
// The fault of an empty or unknown cell in a column that needs a value.
std::string unknown_complaint(const std::string& shown);
// A record that has no cell for such a column.
std::string lacking_complaint();
// The fault of a value's text, and the option that would accept it.
std::string value_complaint(std::string_view text, DType dtype);
// The fault of a number in a column of ids.
std::string id_complaint(std::string_view text, const IdRange& ids);

}  // namespace cairn
