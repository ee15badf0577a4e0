// The end of a message about a name that is none of those that there are.
#pragma once
#include <string>
#include <vector>

namespace cairn {

// "; did you mean \"carat\"? There are \"carat\", \"cut\" and 5 more": the nearest name, if one is
// near enough to be a misspelling, and the first twenty.
std::string names_there(const std::string& name, const std::vector<std::string>& names);

}  // namespace cairn
