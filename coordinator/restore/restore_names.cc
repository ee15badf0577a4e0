// RestorePlan's names: which variable of the checkpoint goes into which of the program's.
#include <algorithm>

#include "coordinator/restore/name_pattern.h"
#include "coordinator/restore/restore_plan.h"
#include "core/base/error.h"
#include "core/tensor/element.h"

namespace cairn {
namespace {

// A number travels as 32 bits, and one of these means that the row went.
constexpr std::int64_t kRowNumbersEnd = (std::int64_t{1} << 32) - 1;
// So many names of a checkpoint a message lists.
constexpr std::size_t kNamesShown = 20;

using Names = std::vector<std::string>;

bool any_matches(const Names& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&name](const std::string& pattern) {
    return matches_pattern(pattern, name);
  });
}

Names names_in(const SavedVariables& saved) {
  Names names;
  for (const auto& [name, variable] : saved) names.push_back(name);
  return names;
}

std::string shown(const Names& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kNamesShown; ++i)
    text += str(i == 0 ? "\"" : ", \"", names[i], '"');
  const std::size_t more = names.size() - std::min(names.size(), kNamesShown);
  return more == 0 ? text : str(text, " and ", more, " more");
}

std::string matches_nothing(const std::string& pattern, const Names& names) {
  const std::string near = nearest_name(pattern, names);
  return near.empty() ? " matches no variable of the checkpoint"
                      : str(" matches no variable of the checkpoint; did you mean \"", near, "\"?");
}

void check_patterns(const char* option, const Names& patterns, const Names& names, Names& wrong) {
  for (const std::string& pattern : patterns) {
    const auto matches = [&](const std::string& name) { return matches_pattern(pattern, name); };
    if (const std::string trouble = pattern_trouble(pattern); !trouble.empty())
      wrong.push_back(str(option, ": the pattern \"", pattern, "\" ", trouble));
    else if (std::none_of(names.begin(), names.end(), matches))
      wrong.push_back(str(option, ": \"", pattern, '"', matches_nothing(pattern, names)));
  }
}

std::string arrow(const std::string& from, const std::string& to) {
  return str('"', from, "\" = \"", to, '"');
}

}  // namespace

bool RestorePlan::leaves_out(const std::string& variable) const {
  return !has(variable) &&
         (left_out_.contains(variable) || any_matches(options_.exclude, variable) ||
          (!options_.include.empty() && !any_matches(options_.include, variable)));
}

// The checkpoint's variables that are restored.
std::set<std::string> RestorePlan::chosen_names(Names& wrong) const {
  const Names names = names_in(saved_);
  const std::size_t before = wrong.size();
  check_patterns("include", options_.include, names, wrong);
  check_patterns("exclude", options_.exclude, names, wrong);
  std::set<std::string> chosen;
  for (const std::string& name : names)
    if ((options_.include.empty() || any_matches(options_.include, name)) &&
        !any_matches(options_.exclude, name))
      chosen.insert(name);
  if (chosen.empty() && !names.empty() && wrong.size() == before)
    wrong.push_back("include, exclude: nothing of the checkpoint is left to restore");
  return chosen;
}

// The program's name of one of the checkpoint.
std::string RestorePlan::target_of(const std::string& saved, Names& wrong) const {
  std::string target = saved, by;
  for (const auto& [from, to] : options_.rename) {
    if (!rename_trouble(from, to).empty()) continue;
    const std::optional<std::string> made = renamed(from, to, saved);
    if (!made.has_value()) continue;
    if (!by.empty())
      wrong.push_back(str("rename: \"", saved, "\" is matched by \"", by, "\" and by \"", from,
                          "\": one of them must not"));
    target = *made;
    by = from;
  }
  return target;
}

std::string RestorePlan::row_trouble(const std::string& variable, const RowNumbers& numbers) const {
  if (!has(variable)) return " takes no rows of the checkpoint";
  if (numbers.size() > kRowNumbersMax)
    return str(" has new numbers for ", numbers.size(), " rows, at most ", kRowNumbersMax,
               " may have any");
  std::set<std::int64_t> seen;
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    if (numbers[row] == kRowGone) continue;
    if (numbers[row] < 0 || numbers[row] >= kRowNumbersEnd)
      return str(": row ", row, " goes to row ", numbers[row]);
    if (!seen.insert(numbers[row]).second) return str(": two rows go to row ", numbers[row]);
  }
  return "";
}

void RestorePlan::resolve() {
  Names wrong;
  const std::set<std::string> chosen = chosen_names(wrong);
  for (const auto& [from, to] : options_.rename) {
    const auto matches = [&from = from, &to = to](const std::string& name) {
      return renamed(from, to, name).has_value();
    };
    if (const std::string trouble = rename_trouble(from, to); !trouble.empty())
      wrong.push_back(str("rename: ", arrow(from, to), ' ', trouble));
    else if (std::none_of(chosen.begin(), chosen.end(), matches))
      wrong.push_back(str("rename: \"", from, "\" matches no variable that is restored"));
  }
  for (const auto& [name, variable] : saved_) {
    const bool restored = chosen.contains(name);
    Names twice;  // of a variable that is left out it does not matter
    const std::string target = target_of(name, restored ? wrong : twice);
    const auto [at, fresh] = (restored ? sources_ : left_out_).emplace(target, name);
    if (restored && !fresh)
      wrong.push_back(str("\"", at->second, "\" and \"", name, "\" would both go into \"", target,
                          "\": exclude one of them"));
  }
  for (const auto& [variable, numbers] : options_.rows)
    if (const std::string trouble = row_trouble(variable, *numbers); !trouble.empty())
      wrong.push_back(str("rows: \"", variable, '"', trouble));
  if (wrong.empty()) return;
  std::string text;
  for (const std::string& one : wrong) text += "\n  " + one;
  throw InvalidArgumentError(str("the checkpoint ", folder_, " cannot be restored as asked:", text,
                                 "\nIts variables are ", shown(names_in(saved_))));
}

}  // namespace cairn
