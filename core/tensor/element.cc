#include "core/tensor/element.h"

#include <algorithm>
#include <numeric>

#include "core/tensor/known_names.h"

namespace cairn {
namespace {

// Levenshtein's distance: the least number of letters to insert, remove or replace. Wagner and
// Fischer, "The string-to-string correction problem", JACM 21 (1974), with one row of the table
// kept.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& names) {
  std::string best;
  // A name of which more than half would have to change is no misspelling of this one.
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 2) + 1;
  for (const auto& candidate : names) {
    std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string names_there(const std::string& name, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 20;
  const std::string near = nearest_name(name, names);
  std::string text = near.empty() ? "; there are " : "; did you mean \"" + near + "\"? There are ";
  if (names.empty()) text += "none";
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i)
    text += str(i == 0 ? "\"" : ", \"", names[i], "\"");
  if (names.size() > kShown) text += str(" and ", names.size() - kShown, " more");
  return text;
}

std::size_t ElementSpec::find(const std::string& name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
    names.push_back(columns[i].name);
  }
  std::erase_if(names, [](const std::string& each) { return each.ends_with("/row_splits"); });
  throw InvalidArgumentError(
      str("the element has no column \"", name, "\"", names_there(name, names)));
}

}  // namespace cairn
