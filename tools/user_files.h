// Files and folders that a user names for output: nobody else's are replaced unasked.
#pragma once
#include <string>

namespace cairn::tools {

// What is done about a file that is there already.
enum class Overwrite : bool { kNo, kYes };

// `path` is free to be written: nothing is there, an empty file, a device or a FIFO, or a report of
// ours. `--report`'s check.
//   Errors  AlreadyExists, naming --overwrite; core/base/output_file.h's.
void verify_report_path(const std::string& path, Overwrite overwrite);
void write_report(const std::string& path, const std::string& text);

// The same for data that is made: whatever is there is somebody's.
void verify_new_file(const std::string& path, Overwrite overwrite);

}  // namespace cairn::tools
