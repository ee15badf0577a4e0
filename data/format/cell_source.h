// The source of files whose records are cut into cells of text by column, as CsvSchema describes
// them: CSV, and JSON lines. It takes over a shard() and a features() directly above it: records of
// other shards are never cut, columns that no feature reads are never stored, and text becomes ids
// without being copied.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/file/cell_reader.h"
#include "data/format/files_stage.h"

namespace cairn {

struct CellSourceParts {
  FilesRules files;
  const CsvSchema* schema;  // of the request's stage
  // `wanted`: the places in schema->columns of the columns to cut, in their order.
  std::function<std::unique_ptr<CellReader>(const std::string& path,
                                            std::unique_ptr<ByteSource> bytes,
                                            const std::vector<std::size_t>& wanted)>
      open;
};

StagePtr make_cell_source(CellSourceParts parts, SourceRequest request);

}  // namespace cairn
