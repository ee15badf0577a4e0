// Lines of libsvm's format: Dataset::libsvm().
#pragma once
#include "data/dataset/file_schema.h"
#include "data/dataset/file_source.h"

namespace cairn {

struct LibsvmFiles final : FilesOf<LibsvmFiles, LibsvmSchema, FileOptions> {
  using FilesOf::FilesOf;

  const char* format() const override { return "libsvm"; }
  ElementSpec element() const override;
  bool is_text() const override { return true; }
  std::unique_ptr<Stage> open(SourceRequest request) const override;
  void write(StageWriter& out) const override;
};

//   Errors  InvalidArgument: as parse_dataset().
Dataset read_libsvm(const StageReader& in);

}  // namespace cairn
