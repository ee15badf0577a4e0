// Flat binary records of one schema: Dataset::records().
#pragma once
#include "data/dataset/file_schema.h"
#include "data/dataset/file_source.h"

namespace cairn {

struct RecordFiles final : FilesOf<RecordFiles, RecordSchema, FileOptions> {
  using FilesOf::FilesOf;

  const char* format() const override { return "records"; }
  ElementSpec element() const override;
  // Only their values tell which records are bad.
  bool counts() const override { return options.on_error == OnError::kFail; }
  std::int64_t count(const LineEvents& events) const override;
  TakesOver takes_over() const override { return TakesOver::kNothing; }
  std::unique_ptr<Stage> open(SourceRequest request) const override;
  void write(StageWriter& out) const override;

  // How many records each of the files has.
  //   Errors  InvalidArgument: a file does not hold whole records, has none, or is compressed.
  //           NotFound: there is no such file.
  std::vector<std::int64_t> counts_of_files(const LineEvents& events) const;
};

//   Errors  InvalidArgument: as parse_dataset().
Dataset read_records(const StageReader& in);

}  // namespace cairn
