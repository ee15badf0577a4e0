// Files of the IDX format side by side, a column each: Dataset::idx().
#pragma once
#include "data/dataset/file_schema.h"
#include "data/dataset/file_source.h"

namespace cairn {

struct IdxFiles final : FileSource {
  IdxFiles(std::vector<IdxColumn> columns_, std::string label_)
      : columns(std::move(columns_)), label(std::move(label_)) {}

  const char* format() const override { return "idx"; }
  ElementSpec element() const override;
  FileLists files() const override;
  FileSourcePtr over(FileLists files) const override;
  FileSourcePtr reading(std::vector<std::string> files) const override;
  // There are no bad examples in such files.
  FileSourcePtr with_on_error(OnError) const override;
  bool counts() const override { return true; }
  std::int64_t count(const LineEvents& events) const override;
  TakesOver takes_over() const override { return TakesOver::kNothing; }
  std::unique_ptr<Stage> open(SourceRequest request) const override;
  void write(StageWriter& out) const override;

  // How many examples each of the files has, which all columns must agree on.
  //   Errors  InvalidArgument: they do not, or a file is not what its column says.
  std::vector<std::int64_t> counts_of_files() const;

  std::vector<IdxColumn> columns;
  std::string label;
};

//   Errors  InvalidArgument: as parse_dataset().
Dataset read_idx(const StageReader& in);

}  // namespace cairn
