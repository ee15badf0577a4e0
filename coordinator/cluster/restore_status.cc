#include "coordinator/cluster/restore_status.h"

#include <set>

#include "core/base/error.h"

namespace cairn {
namespace {

// "adam (m, v)"; a rule without slots by its name alone.
std::string described(const UpdateRule& rule) {
  std::string text(rule_name(rule));
  std::string slots;
  for (const SlotSpec& slot : rule_slots(rule)) slots += str(slots.empty() ? "" : ", ", slot.name);
  return slots.empty() ? text : str(text, " (", slots, ")");
}

TensorType type_of(const ProgramVariable& variable) {
  return {variable.spec->dtype, variable.spec->shape};
}

std::string other_type(const ProgramVariable& variable, const SavedVariable& saved) {
  return str('"', variable.spec->name, "\" is ", type_of(variable).to_string(),
             ", in the checkpoint ", saved.type.to_string());
}

// Slots are taken over from a rule of the same kind only, whatever its constants.
void compare_slots(const ProgramVariable& variable, const SavedVariable& saved,
                   RestoreDifferences& found) {
  if (same_slots(variable.rule, saved.rule)) return;
  const bool wanted = !rule_slots(variable.rule).empty(), held = !rule_slots(saved.rule).empty();
  if (wanted)
    found.other_slots.push_back(str('"', variable.spec->name, "\" is updated by ",
                                    described(variable.rule), ", in the checkpoint by ",
                                    described(saved.rule)));
  else if (held)
    found.unused_slots.push_back(str('"', variable.spec->name, "\" of ", described(saved.rule)));
}

std::string joined(const std::vector<std::string>& all, const char* between = ", ") {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : between) + one;
  return text;
}

}  // namespace

bool RestoreDifferences::existing_match() const {
  return not_saved.empty() && other_type.empty() && other_slots.empty();
}
bool RestoreDifferences::none() const {
  return existing_match() && not_used.empty() && unused_slots.empty();
}

std::string RestoreDifferences::text() const {
  std::string text;
  auto add = [&text](const char* what, const std::vector<std::string>& names,
                     const char* between = ", ") {
    if (!names.empty()) text += str("\n  ", what, ": ", joined(names, between));
  };
  constexpr const char* kLines = "\n    ";
  add("not in the checkpoint", not_saved);
  add("in the checkpoint alone", not_used);
  add("of another dtype or shape", other_type, kLines);
  add("updated by another rule", other_slots, kLines);
  add("with slots that nothing uses", unused_slots, kLines);
  return text;
}

std::vector<ProgramVariable> variables_of(const Layout& layout) {
  std::vector<ProgramVariable> made;
  for (const VariableLayout& variable : layout.variables)
    made.push_back({variable.spec, variable.rule});
  return made;
}

RestoreDifferences compare(const std::vector<ProgramVariable>& made, const SavedVariables& saved) {
  RestoreDifferences found;
  // By name on both sides, so that each list comes out in the order of names.
  std::map<std::string, const ProgramVariable*> by_name;
  for (const ProgramVariable& variable : made) by_name[variable.spec->name] = &variable;
  for (const auto& [name, variable] : by_name) {
    auto there = saved.find(name);
    if (there == saved.end())
      found.not_saved.push_back(str('"', name, '"'));
    else if (!(there->second.type == type_of(*variable)))
      found.other_type.push_back(other_type(*variable, there->second));
    else
      compare_slots(*variable, there->second, found);
  }
  for (const auto& [name, variable] : saved)
    if (!by_name.contains(name)) found.not_used.push_back(str('"', name, '"'));
  return found;
}

void verify_types(const std::vector<ProgramVariable>& made, const SavedVariables& saved,
                  const std::string& folder) {
  const RestoreDifferences found = compare(made, saved);
  if (found.other_type.empty()) return;
  throw FailedPreconditionError(str("the checkpoint ", folder, " is of another model: variable ",
                                    joined(found.other_type),
                                    ": restore it with the model that saved it"));
}

RestoreStatus::RestoreStatus(std::string folder, std::function<RestoreDifferences()> compare,
                             std::function<void()> accept)
    : folder_(std::move(folder)), compare_(std::move(compare)), accept_(std::move(accept)) {}

// Compared anew at each call: between two of them the program may have made the variables that were
// missing.
RestoreStatus& RestoreStatus::assert_consumed() {
  if (const RestoreDifferences found = compare_(); !found.none()) refuse(found);
  return *this;
}

RestoreStatus& RestoreStatus::assert_existing_objects_matched() {
  if (const RestoreDifferences found = compare_(); !found.existing_match()) refuse(found);
  return *this;
}

RestoreStatus& RestoreStatus::expect_partial() {
  accept_();
  return *this;
}

void RestoreStatus::refuse(const RestoreDifferences& found) const {
  throw FailedPreconditionError(
      str("the checkpoint ", folder_, " and the model do not match; variables", found.text(),
          "\nRestore it with the model that saved it; where the rest is to begin anew, say so:"
          " expect_partial(), or --partial"));
}

}  // namespace cairn
