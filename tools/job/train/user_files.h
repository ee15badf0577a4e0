// Files and folders that a user names for output: a file that we did not write is not replaced
// unless the user asks for it.
#pragma once
#include <string>

namespace cairn::tools {

// If a file exists already: refuse, or replace it.
enum class Overwrite : bool { kNo, kYes };

// Checks, for --report, that `path` is free to be written: there is nothing, an empty file, a
// device or a FIFO, or a report of ours.
//   Errors  AlreadyExists, naming --overwrite; those of core/disk/output_file.h.
void verify_report_path(const std::string& path, Overwrite overwrite);
void write_report(const std::string& path, const std::string& text);

// The same for `cairn plot --out`: an earlier plot is replaced.
void verify_plot_path(const std::string& path, Overwrite overwrite);

// The same for generated data. Any file there may be a user's work, even an older file of data.
void verify_new_file(const std::string& path, Overwrite overwrite);

}  // namespace cairn::tools
