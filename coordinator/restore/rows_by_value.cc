#include <string>
#include <unordered_map>

#include "coordinator/restore/restore_options.h"
#include "core/base/error.h"

namespace cairn {
namespace {

using ValueRows = std::unordered_map<std::string, std::int64_t>;

// The row of unknown values is none of them.
ValueRows value_rows(const std::vector<std::string>& vocabulary, Oov oov, const char* which) {
  ValueRows rows;
  std::int64_t row = oov == Oov::kFirst ? 1 : 0;
  for (const std::string& value : vocabulary)
    if (!rows.emplace(value, row++).second)
      throw InvalidArgumentError(str(which, " has \"", value, "\" twice"));
  return rows;
}

}  // namespace

RowNumbers rows_by_value(const VocabInfo& vocabularies) {
  const Oov oov = vocabularies.oov;
  value_rows(vocabularies.old_vocab, oov, "old_vocab");
  const ValueRows now = value_rows(vocabularies.new_vocab, oov, "new_vocab");
  RowNumbers numbers;
  if (oov == Oov::kFirst) numbers.push_back(0);
  for (const std::string& value : vocabularies.old_vocab) {
    const auto found = now.find(value);
    numbers.push_back(found == now.end() ? kRowGone : found->second);
  }
  if (oov == Oov::kLast)
    numbers.push_back(static_cast<std::int64_t>(vocabularies.new_vocab.size()));
  return numbers;
}

}  // namespace cairn
