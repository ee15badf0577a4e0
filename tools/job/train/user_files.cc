#include "tools/job/train/user_files.h"

#include <fstream>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "core/disk/output_file.h"
#include "tools/job/train/plot_page.h"

namespace cairn::tools {
namespace {

constexpr std::uint64_t kReportBytesMax = std::uint64_t{16} << 20;

// By fields that only a report has (tools/job/run/report.cc writes them). A scheduled job writes
// the same report every night, and should not need a flag for that.
bool is_report(const OutputPlace& place) {
  if (place.bytes > kReportBytesMax) return false;
  try {
    const Json there = parse_json(system_disk().read(place.path), place.path);
    return there.is_object() && there.contains("job") && there.contains("completed") &&
           there.contains("lost_updates");
  } catch (const InvalidArgumentError&) {
    return false;
  }
}

[[noreturn]] void refuse(const std::string& path, const char* what) {
  throw AlreadyExistsError(
      str(path, " is there already", what, ": name another file, or replace it with --overwrite"));
}

}  // namespace

// Only a file with bytes in it can be a user's work.
void verify_report_path(const std::string& path, Overwrite overwrite) {
  const OutputPlace place = output_place(path);
  if (place.bytes > 0 && overwrite == Overwrite::kNo && !is_report(place))
    refuse(path, " and is not a report of a run");
}

void write_report(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.finish();
}

void verify_plot_path(const std::string& path, Overwrite overwrite) {
  const OutputPlace place = output_place(path);
  if (place.bytes == 0 || overwrite == Overwrite::kYes) return;
  std::ifstream there(place.path, std::ios::binary);
  std::string begin(std::string_view(kPlotBegins).size(), '\0');
  there.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (begin != kPlotBegins) refuse(path, " and is not a plot of `cairn plot`");
}

void verify_new_file(const std::string& path, Overwrite overwrite) {
  if (output_place(path).bytes > 0 && overwrite == Overwrite::kNo) refuse(path, "");
}

}  // namespace cairn::tools
