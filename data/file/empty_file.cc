#include "data/file/empty_file.h"

#include <filesystem>

#include "core/base/error.h"

namespace cairn {

// An empty file is most often one that was cut short on its way, and training on what is left
// would go unnoticed.
void pass_empty_file(const std::string& path, EmptyFiles empty_files, const LineEvents& events) {
  if (empty_files == EmptyFiles::kFail) {
    std::error_code unknown;  // of a pipe
    const auto bytes = std::filesystem::file_size(path, unknown);
    throw InvalidArgumentError(
        str("no rows are in ", path, unknown ? std::string() : str(" (", bytes, " bytes)"),
            "; fetch such a file again, leave it out, or skip such files by EmptyFiles::kSkip"));
  }
  if (events.on_empty_file) events.on_empty_file(path);
}

}  // namespace cairn
