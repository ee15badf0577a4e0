// Where the rows of a run are, for those that follow them: `cairn serve --follow`.
#pragma once
#include <string>

#include "serving/follow/row_stream.h"

namespace cairn::tools {

// The ps that `run` names: the folder of a run of `cairn train` or `cairn up`, or their addresses,
// with a comma between two. A folder also says cluster and token; for addresses these are
// `cluster` and, if it is not empty, the first line of `token_file`.
//   Errors  NotFound: there is no such run. Unavailable: it has not begun, or has ended.
//           FailedPrecondition: it trains without ps.
RowStreamOptions rows_of_run(const std::string& run, const std::string& cluster,
                             const std::string& token_file);
// Whether `run` is the folder of one.
bool is_run_folder(const std::string& run);

}  // namespace cairn::tools
