// What is said about a bad line of a CSV file, and by which option it would be cured. A job's user
// reads of its keys instead (tools/job_words.h).
#pragma once
#include <string>
#include <string_view>

#include "data/csv_quotes.h"
#include "data/schema.h"

namespace cairn {

// "mend the line, or leave such lines out with ...": ends the message about any line that ends the
// run.
std::string line_cure();
// What is wrong with a quote, and how the schema would allow it.
std::string quote_complaint(QuoteFault::Kind kind, const CsvSchema& schema);
// What is wrong with a cell that is empty or unknown, in a column that needs a value.
std::string unknown_complaint(const std::string& shown);
// What is wrong with the text of a value, and the option that would take it.
std::string value_complaint(std::string_view text, DType dtype);
// What is wrong with a number in a column of ids.
std::string id_complaint(std::string_view text, const IdRange& ids);

}  // namespace cairn
