// The columns of a file: CsvSchema for text, RecordSchema for flat binary records. They are values
// that describe, like a Dataset; Dataset::csv() and records() check them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "data/feature/id_range.h"

namespace cairn {

// A column of a CSV file. Without a header, columns are in the order of the file, and each must be
// listed.
struct CsvColumn {
  std::string name;
  DType dtype = DType::kFloat32;  // float64, integers, bool (0/1/true/false) or string, too
  // Stands for a cell that is empty or holds CsvSchema::unknown. Without it such a cell of a string
  // column keeps its text, and of any other column is an error.
  std::optional<std::string> default_value = std::nullopt;
  bool skip = false;  // read past, never parsed
  // For a column whose cells hold several values: "a|b|c" with separator '|'. It becomes a ragged
  // column (core/tensor/element.h); an empty cell has no values.
  char separator = 0;
  // Adds a column "NAME/missing": float32 1 where the cell is empty or holds CsvSchema::unknown,
  // otherwise 0. It is a column like any other: an input of FeatureColumn::numeric(), say.
  bool missing_indicator = false;
  // Further texts of a cell whose value is unknown, beside CsvSchema::unknown.
  std::vector<std::string> unknown = {};
  // The ids that the cells of a column of whole numbers may hold. Any other number is a bad cell.
  IdRange ids = {};
  // With `skip`, in files without a header: a file may lack the column, which the number of cells
  // in its first row shows. If several columns are optional, it lacks all of them or none.
  bool optional = false;
  // The format of an int64 column whose cells are dates (data/feature/date_format.h), such as
  // "%Y-%m-%d": the values are seconds since 1970-01-01 UTC. Empty: cells are numbers.
  std::string date_format = "";
  bool operator==(const CsvColumn&) const = default;
};

// The column that training is to predict. With `positive` values it becomes float32: 1 for a cell
// equal to one of them, otherwise 0; without, it keeps its own dtype.
struct CsvLabel {
  std::string column;  // one of CsvSchema::columns; empty: no label
  std::vector<std::string> positive = {};
  // With `positive`: the texts that mean 0. Any further text is then an error; empty: every other
  // text means 0.
  std::vector<std::string> negative = {};
  // The truth of a binary cross-entropy: a number outside [0, 1], NaN too, is a bad cell.
  bool binary = false;
  // Instead of `positive`, the texts of classes: the column becomes int64, a cell's place in this
  // list. Any other text is an error.
  std::vector<std::string> classes = {};
  // Rows whose label is unknown are left out (LineEvents::on_unlabelled_rows). Of CSV only.
  bool skip_unknown = false;
  bool operator==(const CsvLabel&) const = default;
};

inline constexpr std::int64_t kCellLinesMax = 1000;  // bound of CsvSchema::cell_lines_max

enum class OnError : std::uint8_t { kFail = 0, kSkipAndCount = 1 };

// The policy for files without a row: no bytes, blank lines alone, or a header alone. Most of them
// were cut short on their way, so the default is an error. kSkip is for the empty parts and the
// _SUCCESS that Spark writes: such files are passed over and reported (LineEvents::on_empty_file).
enum class EmptyFiles : std::uint8_t { kFail = 0, kSkip = 1 };

struct CsvSchema {
  std::vector<CsvColumn> columns;
  CsvLabel label = {};
  char delimiter = ',';
  // The first line that is neither blank nor a comment names the columns; those not in the schema
  // are read past.
  bool header = false;
  bool trim = true;          // drop blanks and tabs around a cell
  std::string comment = "";  // lines that begin with it are skipped; empty: none
  std::string unknown = "";  // the text of a cell whose value is unknown, such as "?"
  // A cell that begins with this character ends at the next one, and may hold delimiters; two of
  // them stand for one. 0: quotes are ordinary characters. A quote that is not closed makes its
  // line a bad one, and so does text behind a closing quote.
  char quote = '"';
  // How many lines a quoted cell may span, from 1 to kCellLinesMax. With 1, a quote that is never
  // closed spoils its own line only; with more, it may swallow up to so many lines before it is
  // noticed.
  std::int64_t cell_lines_max = 1;
  // Whether a quote within a cell that does not begin with one makes the line a bad one as well;
  // otherwise it is text.
  bool strict = false;
  // Conditions, of which a row has to fulfil every one to be read: docs/job-file.md has their
  // form. They see cells as the file has them, without default values. Rows that are left out cost
  // no parsing of their other cells.
  std::vector<std::string> where = {};
  // The last column is the rest of the line, delimiters and quotes included: of "label text" lines.
  bool last_takes_rest = false;
  bool operator==(const CsvSchema&) const = default;
};

struct CsvOptions {
  // A line that does not fit ends the run, or is counted and left out.
  OnError on_error = OnError::kFail;
  EmptyFiles empty_files = EmptyFiles::kFail;
  bool operator==(const CsvOptions&) const = default;
};

// One value, or `count` values in a row, little-endian.
struct RecordField {
  std::string name;
  DType dtype = DType::kFloat32;
  std::int64_t count = 1;  // 1: a scalar per example; above: a vector [count]
  IdRange ids = {};        // of whole numbers: another number makes a bad record
  bool operator==(const RecordField&) const = default;
};

// Records of equal size, fields side by side without gaps.
struct RecordSchema {
  std::vector<RecordField> fields;
  std::string label = "";  // the field that is the label; empty: none
  // A record whose label lies outside [0, 1], NaN too, is a bad one.
  bool binary_label = false;
  // Above 0, instead: so is a label that is not a whole number from 0 to label_classes - 1. At most
  // 65,535.
  std::int64_t label_classes = 0;
  // And so is a NaN or an infinity in any field. false: they are read as they are.
  bool finite = true;
  bool operator==(const RecordSchema&) const = default;
};

}  // namespace cairn
