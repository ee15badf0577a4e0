// A value of a job file that has to be one of a few names.
#pragma once
#include <string>
#include <vector>

namespace cairn::tools {

// Throws unless `value` is one of `known`.
//   place   where the value stands, and its key: "adult.toml:7: model.kind"
//   Errors  InvalidArgument, naming the place, the value, all known names and the nearest.
void verify_known(const std::string& place, const std::string& value,
                  const std::vector<std::string>& known);

}  // namespace cairn::tools
