// The files that a job file names.
#pragma once
#include <string>
#include <vector>

namespace cairn::tools {

class TomlTable;

// Appends the files of `key`, a name or a list of names, beside the job file if they are relative.
// Those of a pattern ("part-*.csv") come in the order of their names.
//   Errors  NotFound: a pattern has no file; names the job file, the line, the key and the pattern.
void read_files(TomlTable& table, const std::string& key, std::vector<std::string>& files);

}  // namespace cairn::tools
