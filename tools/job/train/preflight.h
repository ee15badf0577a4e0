// Preflight: what the end of a run needs is tried at its beginning, while nothing can be lost yet.
// Hours of training must not end with a report that cannot be written.
#pragma once
#include <string>
#include <vector>

#include "core/disk/disk.h"
#include "tools/job/parts/job_model.h"

namespace cairn::tools {

// Makes `folder` if it is not there, and writes and removes a small file in it.
//   Errors  the Disk's. The message says `what` was to be written there, and the flag or key that
//           names another place (`cure`).
void try_folder(Disk& disk, const std::string& folder, const std::string& what,
                const std::string& cure);

// The same for the folder of a file, which itself is not touched.
//   Errors  also InvalidArgument: it is a folder.
void try_file(Disk& disk, const std::string& path, const std::string& what,
              const std::string& cure);

// Reads the test data as evaluations will: all of it as csv, where any cell may be bad; of records
// the first batch.
//   Result  lines that tell which of its files had no rows and were passed over.
//   Errors  the data's own.
std::vector<std::string> try_judged_data(const Job& job, const FittedFeatures& features);

}  // namespace cairn::tools
