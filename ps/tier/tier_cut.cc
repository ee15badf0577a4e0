#include "ps/tier/tier_cut.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::ps {

TierCut::TierCut(std::unique_ptr<storage::ColdCut> records, std::size_t row_bytes,
                 std::size_t record_bytes, std::optional<std::vector<std::int64_t>> rows)
    : records_(std::move(records)),
      form_(std::make_shared<const Form>(Form{row_bytes, record_bytes, std::move(rows)})) {}

void TierCut::next(std::size_t most, storage::RowsDone done) {
  records_->next(most, [form = form_, done = std::move(done)](storage::ReadRows read) {
    if (read.error == nullptr) form->take(read);
    done(std::move(read));
  });
}

void TierCut::Form::take(storage::ReadRows& read) const {
  if (!rows.has_value() && row_bytes == record_bytes) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < read.keys.size(); ++i) {
    const auto row = static_cast<std::int64_t>(read.keys[i]);
    if (rows.has_value() && !std::binary_search(rows->begin(), rows->end(), row)) continue;
    read.keys[kept] = read.keys[i];
    std::memmove(read.rows.data() + kept * row_bytes, read.rows.data() + i * record_bytes,
                 row_bytes);
    ++kept;
  }
  read.keys.resize(kept);
  read.rows.resize(kept * row_bytes);
}

}  // namespace cairn::ps
