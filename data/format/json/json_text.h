// JSON text that is held whole: one object, a list of objects, or one object after another, each
// beginning on a new line. A row is an object; its values are cells, as in JSON lines.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/dataset/file_source.h"
#include "data/dataset/schema.h"

namespace cairn {

// Rows of the text that OpenOptions::open_bytes gives for `name`, or of the file of that name. The
// schema may be one of csv() or of json_lines(): how those cut text into cells is left aside, and
// the rest means what it does for json_lines().
//   Travels  not: a text in memory is of one process.
//   Errors   when read, with row and character: as json_lines().
//   Cost     the text in memory, whole.
Dataset json_text(std::string name, const CsvSchema& schema);

struct JsonTextFiles final : FilesOf<JsonTextFiles, CsvSchema, CsvOptions> {
  using FilesOf::FilesOf;

  const char* format() const override { return "json"; }
  ElementSpec element() const override;
  FileSourcePtr without_column(const std::string& column) const override;
  const CsvSchema* cell_schema() const override { return &schema; }
  bool is_text() const override { return true; }
  TakesOver takes_over() const override { return TakesOver::kShardAndFeatures; }
  std::unique_ptr<Stage> open(SourceRequest request) const override;
  void write(StageWriter& out) const override;
};

}  // namespace cairn
