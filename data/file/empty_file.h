// Files that end without a row: an error, or passed over.
#pragma once
#include <string>

#include "data/dataset/lines_read.h"
#include "data/dataset/schema.h"

namespace cairn {

// Called where the file has ended without a single row, good or bad.
//   Errors  InvalidArgument, unless `empty_files` says kSkip.
void pass_empty_file(const std::string& path, EmptyFiles empty_files, const LineEvents& events);

}  // namespace cairn
