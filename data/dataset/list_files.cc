#include <glob.h>

#include "core/base/error.h"
#include "data/dataset/dataset.h"

namespace cairn {

std::vector<std::string> list_files(const std::string& pattern) {
  glob_t found{};
  const int code = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths;
  for (std::size_t i = 0; code == 0 && i < found.gl_pathc; ++i)
    paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (code == GLOB_NOSPACE || code == GLOB_ABORTED)
    throw UnavailableError(str("list_files: the folders of \"", pattern, "\" could not be read"));
  if (paths.empty()) throw NotFoundError(str("list_files: there is no file \"", pattern, "\""));
  return paths;
}

}  // namespace cairn
