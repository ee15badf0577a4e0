#include "coordinator/restore/restore_plan.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace cairn {
namespace {

TensorType type_of(const VariableSpec& variable) { return {variable.dtype, variable.shape}; }

bool has_slots(const UpdateRule& rule) { return !rule_slots(rule).empty(); }

// "adam (m, v)"; a rule without slots by its name alone.
std::string described(const UpdateRule& rule) {
  std::string text(rule_name(rule));
  std::string slots;
  for (const SlotSpec& slot : rule_slots(rule)) slots += str(slots.empty() ? "" : ", ", slot.name);
  return slots.empty() ? text : str(text, " (", slots, ")");
}

// The same rows, be there more of them or fewer.
bool same_rows(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.shape.rank() > 0 && a.shape.rank() == b.shape.rank() &&
         a.shape.without_front() == b.shape.without_front();
}

std::string joined(const std::vector<std::string>& all, const char* between = ", ") {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : between) + one;
  return text;
}

// By name, so that what is listed comes out in the order of names.
std::map<std::string, const ProgramVariable*> by_name(const std::vector<ProgramVariable>& made) {
  std::map<std::string, const ProgramVariable*> all;
  for (const ProgramVariable& variable : made) all[variable.spec->name] = &variable;
  return all;
}

// Slots are taken over from a rule of the same kind only, whatever its constants.
void compare_slots(const ProgramVariable& variable, const SavedVariable& saved,
                   RestoreDifferences& found) {
  if (same_slots(variable.rule, saved.rule)) return;
  if (has_slots(variable.rule))
    found.other_slots.push_back(str('"', variable.spec->name, "\" is updated by ",
                                    described(variable.rule), ", in the checkpoint by ",
                                    described(saved.rule)));
  else if (has_slots(saved.rule))
    found.unused_slots.push_back(str('"', variable.spec->name, "\" of ", described(saved.rule)));
}

// As in ", slots of adam (m, v)".
std::string slots_text(const ProgramVariable& variable, const SavedVariable& saved, bool taken) {
  if (saved.slots_dropped && (has_slots(variable.rule) || has_slots(saved.rule)))
    return ", slots begin anew: it was saved without them";
  const bool same = same_slots(variable.rule, saved.rule);
  if (taken && has_slots(saved.rule) && (same || !has_slots(variable.rule)))
    return str(", slots of ", described(saved.rule));
  return has_slots(variable.rule) || has_slots(saved.rule) ? ", slots begin anew" : "";
}

std::string numbers_text(const RowNumbers& numbers, std::int64_t rows) {
  const auto gone = std::count(numbers.begin(), numbers.end(), kRowGone);
  const auto kept = static_cast<std::int64_t>(numbers.size()) - gone;
  return str(kept, " rows to their new numbers, ", gone, " left out, ", rows - kept,
             " rows begin anew");
}

}  // namespace

bool RestoreDifferences::existing_match() const {
  return not_saved.empty() && other_type.empty() && other_slots.empty();
}
bool RestoreDifferences::none() const {
  return existing_match() && not_used.empty() && unused_slots.empty() &&
         renamed_onto_nothing.empty();
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
  add("renamed onto no variable of the program", renamed_onto_nothing);
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

RestorePlan::RestorePlan(SavedVariables saved, std::string folder)
    : RestorePlan(std::move(saved), std::move(folder), {}) {}

RestorePlan::RestorePlan(SavedVariables saved, std::string folder, RestoreOptions options)
    : saved_(std::move(saved)), folder_(std::move(folder)), options_(std::move(options)) {
  resolve();
}

// Empty: the checkpoint's rows fit the variable, or it takes none.
std::string RestorePlan::trouble_of(const VariableSpec& variable) const {
  const auto source = sources_.find(variable.name);
  if (source == sources_.end()) return "";
  const SavedVariable& saved = saved_.at(source->second);
  const TensorType wanted = type_of(variable);
  if (const auto numbers = options_.rows.find(variable.name); numbers != options_.rows.end())
    return numbers_trouble(variable, saved, *numbers->second);
  if (saved.type == wanted) return "";
  const std::string as = source->second == variable.name ? "" : str(" as \"", source->second, '"');
  const std::string types = str('"', variable.name, "\" is ", wanted.to_string(),
                                ", in the checkpoint ", saved.type.to_string(), as);
  // Rows of a dense variable have all their numbers, those of a hashed one may have any.
  if (saved.hashed == variable.hashed || !same_rows(saved.type, wanted)) return types;
  if (saved.hashed || saved.type.shape[0] <= variable.rows()) return "";
  return str(types, ", whose rows are more than its ids");
}

std::string RestorePlan::numbers_trouble(const VariableSpec& variable, const SavedVariable& saved,
                                         const RowNumbers& numbers) const {
  const TensorType wanted = type_of(variable);
  const std::string name = str('"', variable.name, '"');
  if (!same_rows(saved.type, wanted))
    return str(name, " is ", wanted.to_string(), ", in the checkpoint ", saved.type.to_string());
  if (saved.type.shape[0] != static_cast<std::int64_t>(numbers.size()))
    return str(name, " has new numbers for ", numbers.size(), " rows, and the checkpoint has ",
               saved.type.shape[0]);
  const auto last = std::max_element(numbers.begin(), numbers.end());
  if (last == numbers.end() || *last < variable.rows()) return "";
  return str(name, " has ", variable.rows(), " rows, and row ", last - numbers.begin(),
             " of the checkpoint is to go to row ", *last);
}

bool RestorePlan::fits(const VariableSpec& variable) const { return trouble_of(variable).empty(); }

bool RestorePlan::as_saved(const VariableSpec& variable) const {
  const auto source = sources_.find(variable.name);
  return source != sources_.end() && source->second == variable.name &&
         takes_slots(saved_.at(source->second)) && !options_.rows.contains(variable.name) &&
         saved_.at(source->second).type == type_of(variable);
}

bool RestorePlan::may_not_fit(const VariableSpec& variable) const {
  const auto source = sources_.find(variable.name);
  if (source == sources_.end() || options_.rows.contains(variable.name)) return false;
  const SavedVariable& saved = saved_.at(source->second);
  return saved.hashed && !variable.hashed && saved.type.shape[0] > variable.rows() &&
         fits(variable);
}

std::optional<RowMove> RestorePlan::move_of(const VariableSpec& variable) const {
  const auto source = sources_.find(variable.name);
  if (source == sources_.end()) return std::nullopt;
  if (!fits(variable)) verify({{std::make_shared<const VariableSpec>(variable), {}}});
  RowMove move{.from = source->second,
               .slots = takes_slots(saved_.at(source->second)),
               .rows = variable.rows()};
  if (const auto numbers = options_.rows.find(variable.name); numbers != options_.rows.end())
    move.numbers = numbers->second;
  return move;
}

void RestorePlan::verify(const std::vector<ProgramVariable>& made) const {
  std::vector<std::string> wrong;
  for (const auto& [name, variable] : by_name(made))
    if (std::string trouble = trouble_of(*variable->spec); !trouble.empty())
      wrong.push_back(std::move(trouble));
  if (wrong.empty()) return;
  throw FailedPreconditionError(
      str("the checkpoint ", folder_, " is of another model: variable ", joined(wrong),
          ": restore it with the model that saved it, or leave out what differs by "
          "RestoreOptions::exclude"));
}

RestoreDifferences RestorePlan::compare(const std::vector<ProgramVariable>& made) const {
  RestoreDifferences found;
  const auto all = by_name(made);
  for (const auto& [name, variable] : all) {
    const auto source = sources_.find(name);
    if (source == sources_.end()) {
      if (!leaves_out(name)) found.not_saved.push_back(str('"', name, '"'));
    } else if (std::string trouble = trouble_of(*variable->spec); !trouble.empty()) {
      found.other_type.push_back(std::move(trouble));
    } else if (takes_slots(saved_.at(source->second))) {
      compare_slots(*variable, saved_.at(source->second), found);
    }
  }
  for (const auto& [name, source] : sources_) {
    if (all.contains(name)) continue;
    if (name == source)
      found.not_used.push_back(str('"', name, '"'));
    else
      found.renamed_onto_nothing.push_back(str('"', source, "\" as \"", name, '"'));
  }
  return found;
}

std::string RestorePlan::line_of(const ProgramVariable& variable) const {
  const VariableSpec& spec = *variable.spec;
  const auto source = sources_.find(spec.name);
  const std::string name = str("\n  \"", spec.name, "\": ");
  if (source == sources_.end())
    return name +
           (leaves_out(spec.name) ? "begins anew, left out" : "begins anew, not in the checkpoint");
  if (const std::string trouble = trouble_of(spec); !trouble.empty())
    return str(name, "does not fit: ", trouble);
  const SavedVariable& saved = saved_.at(source->second);
  const std::int64_t rows = saved.type.shape.rank() == 0 ? 1 : saved.type.shape[0];
  std::string text = str(name, "from \"", source->second, "\", ");
  if (const auto numbers = options_.rows.find(spec.name); numbers != options_.rows.end())
    text += numbers_text(*numbers->second, spec.rows());
  else
    text += saved.hashed ? "its hashed rows" : rows == 1 ? "1 row" : str(rows, " rows");
  if (saved.hashed != spec.hashed) text += saved.hashed ? ", as dense ones" : ", as hashed ones";
  return text + slots_text(variable, saved, options_.slots);
}

std::string RestorePlan::text(const std::vector<ProgramVariable>& made) const {
  std::string text = str("from the checkpoint ", folder_, ':', lines(made));
  if (made.empty()) text += "\n  variables take their rows when they are made";
  const auto all = by_name(made);
  for (const auto& [target, source] : left_out_)
    if (!all.contains(target)) text += str("\n  of the checkpoint, left out: \"", source, '"');
  return text;
}

std::string RestorePlan::lines(const std::vector<ProgramVariable>& made) const {
  std::string text;
  for (const auto& [name, variable] : by_name(made)) text += line_of(*variable);
  return text;
}

bool RestorePlan::unusual(const std::vector<ProgramVariable>& made) const {
  return chooses() || std::any_of(made.begin(), made.end(), [this](const ProgramVariable& each) {
           const auto source = sources_.find(each.spec->name);
           if (source == sources_.end()) return false;
           const SavedVariable& saved = saved_.at(source->second);
           return saved.hashed != each.spec->hashed ||
                  (saved.slots_dropped && has_slots(saved.rule));
         });
}

}  // namespace cairn
