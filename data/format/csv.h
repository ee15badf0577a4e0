// CSV files: Dataset::csv().
#pragma once
#include "data/dataset/file_source.h"
#include "data/dataset/schema.h"

namespace cairn {

struct CsvFiles final : FilesOf<CsvFiles, CsvSchema, CsvOptions> {
  using FilesOf::FilesOf;

  const char* format() const override { return "csv"; }
  ElementSpec element() const override;
  FileSourcePtr without_column(const std::string& column) const override;
  const CsvSchema* cell_schema() const override { return &schema; }
  bool is_text() const override { return true; }
  TakesOver takes_over() const override { return TakesOver::kShardAndFeatures; }
  std::unique_ptr<Stage> open(SourceRequest request) const override;
  void write(StageWriter& out) const override;
};

//   Errors  InvalidArgument: as parse_dataset().
Dataset read_csv(const StageReader& in);

}  // namespace cairn
