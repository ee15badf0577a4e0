// Messages in one place, because each has to name the cure. Their words are part of the tests: a
// message that no longer names the option is a bug.
#include "data/file/csv_complaints.h"

#include "core/base/error.h"
#include "data/feature/number_complaint.h"
#include "data/feature/printable.h"

namespace cairn {

std::string line_cure() {
  return "mend the line, or leave such lines out with OnError::kSkipAndCount";
}

// Two cures are offered, since a quote may be a mistake in the line or an ordinary character of the
// file; which one it is, only the user knows.
std::string quote_complaint(QuoteFault::Kind kind, const CsvSchema& schema) {
  std::string what;
  switch (kind) {
    case QuoteFault::Kind::kNone: break;
    case QuoteFault::Kind::kNotClosed:
      what =
          schema.cell_lines_max == 1
              ? "a quote is opened and not closed on this line; if cells may hold line ends, say "
                "how many lines with CsvSchema::cell_lines_max"
              : str("a quote is opened and never closed, at least not within ",
                    schema.cell_lines_max, " lines");
      break;
    case QuoteFault::Kind::kTextBehind: what = "text follows the closing quote of this cell"; break;
    case QuoteFault::Kind::kWithinCell:
      what = "a quote stands within a cell that does not begin with one (CsvSchema::strict)";
      break;
  }
  return what +
         "; if quotes are ordinary characters in this file, switch them off with CsvSchema::quote "
         "= "
         "0";
}

std::string unknown_complaint(const std::string& shown) {
  return str("the value is unknown (\"", shown,
             "\") and the column has no CsvColumn::default_value; give it one");
}

std::string lacking_complaint() {
  return "there is no value for it (no such key, or null), and the column has no "
         "CsvColumn::default_value; give it one";
}

// "nan" mostly marks a missing value. Some programs write whole numbers with a decimal point as
// soon as one of them is missing.
std::string value_complaint(std::string_view text, DType dtype) {
  std::string what = number_complaint(text, dtype);
  switch (number_fault(text, dtype)) {
    case NumberFault::kNotFinite:
      return what +
             "; if it stands for a value that is not known, name it in CsvColumn::unknown, and "
             "give "
             "the column a CsvColumn::default_value";
    case NumberFault::kNotWhole:
      return str(what, ", but a number with a decimal point or an exponent; give the column dtype ",
                 dtype_name(dtype_with_fractions(text)));
    default: return what;
  }
}

std::string id_complaint(std::string_view text, const IdRange& ids) {
  return str("\"", printable(text), "\" is not ", ids.text(), " (CsvColumn::ids)");
}

}  // namespace cairn
