#include "data/file_wire.h"

#include "data/wire_parts.h"

namespace cairn {
namespace {

OnError read_on_error(std::uint8_t number) {
  return read_enum(number, OnError::kSkipAndCount, "an error policy");
}

Dataset read_text_lines(pipeline::TextLines::Reader in) {
  TextOptions options;
  options.column = read_text(in.getColumn());
  options.skip_blank = in.getSkipBlank();
  options.line_bytes_max = in.getLineBytesMax();
  options.on_error = read_on_error(in.getOnError());
  return Dataset::text_lines(read_texts(in.getPaths(), kPathsMax), std::move(options));
}

}  // namespace

void write_kind(pipeline::Stage::Builder stage, const TextSpec& spec) {
  auto out = stage.initTextLines();
  write_texts(out.initPaths(static_cast<unsigned>(spec.paths.size())), spec.paths);
  out.setColumn(spec.options.column);
  out.setSkipBlank(spec.options.skip_blank);
  out.setLineBytesMax(spec.options.line_bytes_max);
  out.setOnError(static_cast<std::uint8_t>(spec.options.on_error));
}

bool is_file_source(pipeline::Stage::Which which) { return which == pipeline::Stage::TEXT_LINES; }

Dataset read_file_source(pipeline::Stage::Reader in) { return read_text_lines(in.getTextLines()); }

}  // namespace cairn
