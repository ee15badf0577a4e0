// Lines of text, each an example of one string: Dataset::text_lines().
#pragma once
#include "data/dataset/file_schema.h"
#include "data/dataset/file_source.h"

namespace cairn {

struct NoSchema {};

struct TextFiles final : FilesOf<TextFiles, NoSchema, TextOptions> {
  TextFiles(std::vector<std::string> paths_, TextOptions options_)
      : FilesOf(std::move(paths_), {}, std::move(options_)) {}

  const char* format() const override { return "text_lines"; }
  ElementSpec element() const override;
  bool is_text() const override { return true; }
  std::unique_ptr<Stage> open(SourceRequest request) const override;
  void write(StageWriter& out) const override;
};

//   Errors  InvalidArgument: as parse_dataset().
Dataset read_text_lines(const StageReader& in);

}  // namespace cairn
