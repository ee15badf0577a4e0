// A new format is a class of data/format/ and a line here. The schema's union has no member for it:
// it writes itself as a `files`, under its name.
#include "data/format/formats.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/error.h"
#include "data/feature/printable.h"
#include "data/format/column_files.h"
#include "data/format/csv.h"
#include "data/format/idx.h"
#include "data/format/json/json_lines.h"
#include "data/format/libsvm.h"
#include "data/format/records.h"
#include "data/format/text_lines.h"
#include "data/format/tfrecords.h"
#include "data/format/wire_parts.h"

namespace cairn {
namespace {

struct Format {
  pipeline::Stage::Which which;
  Dataset (*read)(const StageReader& in);
  std::string_view name = "";  // of a `files`
};

constexpr std::array kFormats{
    Format{pipeline::Stage::CSV, read_csv},
    Format{pipeline::Stage::RECORDS, read_records},
    Format{pipeline::Stage::TEXT_LINES, read_text_lines},
    Format{pipeline::Stage::LIBSVM, read_libsvm},
    Format{pipeline::Stage::TF_RECORDS, read_tfrecords},
    Format{pipeline::Stage::IDX, read_idx},
    Format{pipeline::Stage::FILES, read_json_lines, JsonLinesFiles::kJsonLines},
    Format{pipeline::Stage::FILES, read_column_files, ColumnFiles::kColumns},
};

}  // namespace

bool is_file_source(pipeline::Stage::Reader stage) {
  return stage.isFiles() ||
         std::ranges::find(kFormats, stage.which(), &Format::which) != kFormats.end();
}

Dataset read_file_source(pipeline::Stage::Reader stage) {
  const std::string name = stage.isFiles() ? read_text(stage.getFiles().getFormat()) : "";
  for (const Format& format : kFormats)
    if (format.which == stage.which() && format.name == name) return format.read({stage});
  throw InvalidArgumentError(str("a dataset of files in the format \"", printable(name),
                                 "\", which this program does not know"));
}

}  // namespace cairn
