#include "coordinator/checkpoint/chosen_encoding.h"

#include <algorithm>

#include "coordinator/restore/name_pattern.h"
#include "core/base/error.h"

namespace cairn {

void verify_encoding(const storage::RowEncoding& encoding) {
  for (const std::string& pattern : encoding.variables)
    if (const std::string trouble = pattern_trouble(pattern); !trouble.empty())
      throw InvalidArgumentError(
          str("the pattern \"", pattern, "\" of the variables to encode ", trouble));
}

storage::ChosenEncoding choose_encoding(const storage::RowEncoding& encoding,
                                        const std::vector<const VariableSpec*>& variables) {
  verify_encoding(encoding);
  storage::ChosenEncoding chosen{.compression = encoding.compression};
  if (encoding.exact()) return chosen;
  chosen.rows = encoding.rows;
  chosen.slots = encoding.slots;
  for (const VariableSpec* variable : variables) {
    const auto matches = [&](const std::string& pattern) {
      return matches_pattern(pattern, variable->name);
    };
    if (variable->dtype == DType::kFloat32 &&
        (variable->hashed ||
         std::any_of(encoding.variables.begin(), encoding.variables.end(), matches)))
      chosen.variables.insert(variable->name);
  }
  return chosen;
}

void note_encoding(const storage::ChosenEncoding& encoding, storage::VariableInfo& variable) {
  const storage::BlockForm form = encoding.form_of(variable.name);
  variable.row_form = form.rows;
  if (!variable.slots.empty()) variable.slot_form = form.slots;
}

std::string encoding_text(const storage::RowEncoding& asked,
                          const storage::ChosenEncoding& chosen) {
  std::string text;
  if (!asked.exact()) {
    const std::size_t count = chosen.variables.size();
    text = str(", ", count, count == 1 ? " variable" : " variables", " with rows as ",
               storage::form_name(asked.rows), " and slots as ", storage::form_name(asked.slots));
    if (asked.slots == storage::SlotForm::kDropped)
      text = str(", ", count, count == 1 ? " variable" : " variables", " with rows as ",
                 storage::form_name(asked.rows), " and slots dropped");
    if (count == 0)
      text += " (none is hashed, and no pattern of those to encode matches: all is exact)";
  }
  if (asked.compression != storage::Compression::kNone)
    text += str(", ", storage::compression_name(asked.compression));
  return text;
}

}  // namespace cairn
