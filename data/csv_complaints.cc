// Messages in one place, because each has to name the cure in two vocabularies. Their words are
// part of the tests: a message that no longer names the option is a bug.
#include "data/csv_complaints.h"

#include "core/base/error.h"
#include "data/number_complaint.h"
#include "data/printable.h"

namespace cairn {

std::string line_cure(OptionNames names) {
  return str("mend the line, or leave such lines out with ",
             names == OptionNames::kCpp ? "OnError::kSkipAndCount" : "data.skip_bad_rows = true");
}

// Two cures are offered, since a quote may be a mistake in the line or an ordinary character of the
// file; which one it is, only the user knows.
std::string quote_complaint(QuoteFault::Kind kind, const CsvSchema& schema, OptionNames names) {
  const bool cpp = names == OptionNames::kCpp;
  const std::string plain =
      str("; if quotes are ordinary characters in this file, switch them off with ",
          cpp ? "CsvSchema::quote = 0" : "data.csv.quote = \"\"");
  const std::string longer = str("; if cells may hold line ends, say how many lines with ",
                                 cpp ? "CsvSchema::cell_lines_max" : "data.csv.cell_lines_max");
  std::string what;
  switch (kind) {
    case QuoteFault::Kind::kNone: break;
    case QuoteFault::Kind::kNotClosed:
      what = schema.cell_lines_max == 1
                 ? "a quote is opened and not closed on this line" + longer
                 : str("a quote is opened and never closed, at least not within ",
                       schema.cell_lines_max, " lines");
      break;
    case QuoteFault::Kind::kTextBehind: what = "text follows the closing quote of this cell"; break;
    case QuoteFault::Kind::kWithinCell:
      what = str("a quote stands within a cell that does not begin with one (",
                 cpp ? "CsvSchema::strict" : "data.csv.strict", ")");
      break;
  }
  return what + plain;
}

std::string unknown_complaint(const std::string& shown, OptionNames names) {
  const std::string what = str("the value is unknown (\"", shown, "\")");
  return names == OptionNames::kJobFile
             ? what
             : what + " and the column has no default_value; give it one";
}

// "nan" mostly marks a missing value. Some programs write whole numbers with a decimal point as soon
// as one of them is missing.
std::string value_complaint(std::string_view text, DType dtype, OptionNames names) {
  std::string what = number_complaint(text, dtype);
  const bool cpp = names == OptionNames::kCpp;
  switch (number_fault(text, dtype)) {
    case NumberFault::kNotFinite:
      return what + "; if it stands for a value that is not known, name it in " +
             (cpp ? "CsvColumn::unknown, with a default_value"
                  : "\"unknown\" of its column, with a \"default\"");
    case NumberFault::kNotWhole:
      return str(what, ", but a number with a decimal point or an exponent; give the column dtype ",
                 dtype_name(dtype_with_fractions(text)));
    default: return what;
  }
}

std::string id_complaint(std::string_view text, const IdRange& ids, OptionNames names) {
  return str("\"", printable(text), "\" is not ", ids.text(), " (",
             names == OptionNames::kCpp ? "CsvColumn::ids" : "features.ids", ")");
}

}  // namespace cairn
