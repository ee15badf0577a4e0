#include "tools/job/train/preflight.h"

#include <unistd.h>

#include <exception>

#include "core/base/error.h"
#include "core/disk/output_file.h"
#include "data/stage/fit.h"
#include "tools/job/parts/job_warnings.h"
#include "tools/job/spec/job_format.h"

namespace cairn::tools {
namespace {

// So many bytes that a full disk refuses them; an empty file might still fit.
constexpr std::size_t kProbeBytes = 4096;

// The error keeps its class, and its message says what would have failed, when, and what to do.
[[noreturn]] void refuse(const std::string& path, const std::string& what,
                         const std::string& cure) {
  ErrorParts parts = error_parts(std::current_exception());
  parts.message = str("the ", what, " could not be written to ", path,
                      " at the end: ", parts.message, "; mend that, or ", cure);
  throw_error(parts);
}

// A write and not a look at permissions: only a write finds quotas, full disks and read-only
// mounts. The name has the process number, so that two runs do not remove each other's.
void write_and_remove(Disk& disk, const std::string& folder) {
  const std::string probe = str(folder, "/.cairn-probe-", ::getpid());
  try {
    disk.write_atomically(probe, std::string(kProbeBytes, ' '));
  } catch (const Error&) {
    const std::exception_ptr error = std::current_exception();
    try {
      disk.remove(probe);
    } catch (const Error&) {  // missing, or not removable: the first error is raised
    }
    std::rethrow_exception(error);
  }
  disk.remove(probe);
}

}  // namespace

void try_folder(Disk& disk, const std::string& folder, const std::string& what,
                const std::string& cure) {
  try {
    disk.make_folder(folder);
    write_and_remove(disk, folder);
  } catch (const Error&) {
    refuse(folder, what, cure);
  }
}

void try_file(Disk& disk, const std::string& path, const std::string& what,
              const std::string& cure) {
  try {
    const OutputPlace place = output_place(path);
    // A device or a FIFO is not tried: writing to it could not be undone.
    if (!place.in_place) write_and_remove(disk, folder_of(place.path));
  } catch (const Error&) {
    refuse(path, what, cure);
  }
}

// fit() with an empty request reads everything and computes nothing. What is held back of the
// training data was read with it.
std::vector<std::string> try_judged_data(const Job& job, const FittedFeatures& features) {
  std::vector<std::string> told;
  for (const EvaluationData& evaluated : eval_sources(job, features)) {
    if (evaluated.key == "data.train") continue;
    const bool all = job.data.form().form() != FeatureForm::kNumbers;
    const Fit read = fit(all ? evaluated.data : evaluated.data.take(job.evaluation.batch), {});
    if (std::string text = empty_files_text(read.lines, evaluated.key); !text.empty())
      told.push_back(std::move(text));
  }
  return told;
}

}  // namespace cairn::tools
