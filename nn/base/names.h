// Finding what a user named, and saying what was meant where nothing has that name.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/element.h"

namespace cairn::nn {

// The entry of that name.
//   Errors  InvalidArgument: there is none; names the nearest one, or else all. `what` says what
//           the names are of.
template <typename T>
const T& find_named(const std::map<std::string, T>& entries, const std::string& what,
                    const std::string& name) {
  const auto found = entries.find(name);
  if (found != entries.end()) return found->second;
  std::vector<std::string> names;
  std::string list;
  for (const auto& entry : entries) {
    names.push_back(entry.first);
    list += str(list.empty() ? "" : ", ", entry.first);
  }
  const std::string near = nearest_name(name, names);
  throw InvalidArgumentError(
      str("there is no ", what, " \"", name, "\"; ",
          near.empty() ? str("there are: ", list) : str("did you mean \"", near, "\"?")));
}

}  // namespace cairn::nn
