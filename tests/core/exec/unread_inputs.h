// Inputs of recorded cases that no test can have read: they might change the answer, and a test
// that passes them over would pass by silence.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace cairn::testing {

// The names within an input: "ids[]" of a list of numbers, "ids[][]" of a list of such lists,
// "arguments.axis". What is null is not given.
inline void add_forms(const Json& input, const std::string& name, std::set<std::string>& forms) {
  if (input.is_object()) {
    for (const auto& [key, value] : input.items())
      add_forms(value, name.empty() ? key : name + "." + key, forms);
  } else if (input.is_array()) {
    forms.insert(name + "[]");
    for (const Json& each : input)
      if (each.is_structured()) add_forms(each, name + "[]", forms);
  } else if (!input.is_null()) {
    forms.insert(name);
  }
}

// By kind of case.
using KnownForms = std::map<std::string, std::set<std::string>>;
inline void add_known_forms(const Json& vectors, KnownForms& known) {
  for (const Json& test : vectors.at("cases"))
    add_forms(test.at("in"), "", known[test.at("kind").get<std::string>()]);
}

// The inputs in `vectors` that no known case of the same kind has, each with the name of its case.
// A kind without any known case is the failure of another test.
inline std::vector<std::string> unread_inputs(const Json& vectors, const KnownForms& known) {
  std::vector<std::string> unread;
  for (const Json& test : vectors.at("cases")) {
    const auto kind = known.find(test.at("kind").get<std::string>());
    if (kind == known.end()) continue;
    std::set<std::string> forms;
    add_forms(test.at("in"), "", forms);
    for (const std::string& form : forms)
      if (!kind->second.contains(form))
        unread.push_back("no test reads \"" + form + "\" of case \"" +
                         test.at("id").get<std::string>() + "\" (" + kind->first + ")");
  }
  return unread;
}

}  // namespace cairn::testing
