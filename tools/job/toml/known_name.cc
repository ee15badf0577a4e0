#include "tools/job/toml/known_name.h"

#include "core/base/error.h"
#include "core/tensor/element.h"

namespace cairn::tools {

void verify_known(const std::string& place, const std::string& value,
                  const std::vector<std::string>& known) {
  std::string list;
  for (const std::string& one : known) {
    if (one == value) return;
    list += (list.empty() ? "" : ", ") + one;
  }
  const std::string near = nearest_name(value, known);
  throw InvalidArgumentError(str(place, " is \"", value, "\", one of ", list, " is wanted",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace cairn::tools
