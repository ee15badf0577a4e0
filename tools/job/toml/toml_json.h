// JSON as TOML: for jobs that a program has in hand, whose keys are then read as those of a file.
//   Thread  any.
#pragma once
#include <string>

#include "core/base/json.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {

// The table of a JSON object. `name` is what messages call it.
//   Errors  InvalidArgument, which names the key: it is no object; a value is null, or too large
//           for TOML.
toml::table table_of_json(const Json& object, const std::string& name);

}  // namespace cairn::tools
