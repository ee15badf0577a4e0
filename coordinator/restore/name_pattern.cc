#include "coordinator/restore/name_pattern.h"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>

namespace cairn {

// fnmatch() takes an unfinished set for a plain "[", and a "\" at the end for no match at all. Both
// are slips, and would go unnoticed.
std::string pattern_trouble(const std::string& pattern) {
  if (pattern.empty()) return "is empty";
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && ++i == pattern.size()) return "ends in \"\\\"";
    if (pattern[i] != '[') continue;
    // A "]" that comes first, or behind the "!", belongs to the set.
    const std::size_t first = i + (pattern.compare(i + 1, 1, "!") == 0 ? 3 : 2);
    i = first < pattern.size() ? pattern.find(']', first) : std::string::npos;
    if (i == std::string::npos) return "has a \"[\" without its \"]\"";
  }
  return "";
}

bool matches_pattern(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::string rename_trouble(const std::string& from, const std::string& to) {
  if (from.empty() || to.empty()) return "has an empty side";
  if (from.find_first_of("?[\\") != std::string::npos) return "may have no wildcard but \"*\"";
  const auto stars = std::count(from.begin(), from.end(), '*');
  if (stars > 1) return "may have one \"*\" on each side";
  if (stars != std::count(to.begin(), to.end(), '*'))
    return "needs a \"*\" on both sides or on neither";
  return "";
}

std::optional<std::string> renamed(const std::string& from, const std::string& to,
                                   const std::string& name) {
  const std::size_t star = from.find('*');
  if (star == std::string::npos) return name == from ? std::optional(to) : std::nullopt;
  const std::string_view head = std::string_view(from).substr(0, star),
                         tail = std::string_view(from).substr(star + 1);
  if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail))
    return std::nullopt;
  std::string made = to;
  return made.replace(to.find('*'), 1,
                      name.substr(head.size(), name.size() - head.size() - tail.size()));
}

}  // namespace cairn
