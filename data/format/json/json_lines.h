// JSON lines: files with one JSON object per line, whose values are the cells of columns by name.
#pragma once
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/dataset/file_source.h"
#include "data/dataset/schema.h"

namespace cairn {

// The lines of JSON lines files, file after file, compressed or not. Of the schema the columns, the
// label, `unknown` and `where` mean what they do for csv(); what says how text is cut into cells
// has to stay as it is by default.
//   Columns  by the keys of each line's object; other keys are read past. A column with a
//            `separator`, whichever it is, holds lists; any other one value per line: a number, a
//            text, true or false. Numbers are read with all of their digits, and never from a
//            double. A text serves for a number if it reads as one.
//   Missing  null, an empty text, `unknown`, and no such key: CsvColumn::default_value; without one
//            it is an error, but for a string column whose text is empty, one that has a
//            missing_indicator, and a list, which then has no values.
//   Errors  when read, with file, line and column: a line that is no JSON object, a key twice, an
//           object or a list where one value is wanted, a value of another type.
Dataset json_lines(std::vector<std::string> paths, CsvSchema schema, CsvOptions options = {});

struct JsonLinesFiles final : FilesOf<JsonLinesFiles, CsvSchema, CsvOptions> {
  using FilesOf::FilesOf;

  const char* format() const override { return kJsonLines; }
  ElementSpec element() const override;
  FileSourcePtr without_column(const std::string& column) const override;
  const CsvSchema* cell_schema() const override { return &schema; }
  bool is_text() const override { return true; }
  TakesOver takes_over() const override { return TakesOver::kShardAndFeatures; }
  std::unique_ptr<Stage> open(SourceRequest request) const override;
  void write(StageWriter& out) const override;

  static constexpr const char* kJsonLines = "jsonl";
};

//   Errors  InvalidArgument: as parse_dataset().
Dataset read_json_lines(const StageReader& in);

}  // namespace cairn
