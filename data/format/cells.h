// Helpers of all formats whose records are cells of text, as CsvSchema describes them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/element.h"
#include "data/dataset/schema.h"
#include "data/pipeline.capnp.h"

namespace cairn {

// The columns in the order of the schema, without those that are skipped.
//   Errors  InvalidArgument: they do not fit together.
ElementSpec element_of_cells(const CsvSchema& schema);

// The schema of files that may lack the column, where names or the number of cells show that. None:
// a condition reads it, or it cannot be known to be missing.
std::optional<CsvSchema> without_cells(CsvSchema schema, const std::string& column);

// The schema, the files and their options on the wire, and back.
void write_cells(pipeline::Csv::Builder out, const std::vector<std::string>& paths,
                 const CsvSchema& schema, const CsvOptions& options);
CsvSchema read_cells(pipeline::Csv::Reader in);

}  // namespace cairn
