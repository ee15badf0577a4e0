// Patterns that choose variables by their names, as a shell's do for files: "*" stands for any
// characters, "/" among them, "?" for one, "[ab]" for one of a set.
//   Thread  any.
#pragma once
#include <optional>
#include <string>

namespace cairn {

// Says what is wrong with it, as in: has a "[" without its "]". Empty: nothing.
std::string pattern_trouble(const std::string& pattern);
bool matches_pattern(const std::string& pattern, const std::string& name);

// A rename has at most one "*" on each side, and no other wildcard: what it stands for is carried
// over.
std::string rename_trouble(const std::string& from, const std::string& to);
// The new name, or empty if `from` does not match.
std::optional<std::string> renamed(const std::string& from, const std::string& to,
                                   const std::string& name);

}  // namespace cairn
