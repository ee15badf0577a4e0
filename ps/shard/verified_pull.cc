#include "ps/shard/verified_pull.h"

#include <algorithm>
#include <optional>

#include "core/tensor/bfloat16.h"
#include "ps/shard/encoding.h"
#include "ps/table/table.h"

namespace cairn::ps {

void VerifiedPull::read(std::byte* out) {
  std::size_t bytes = 0, pulled = 0;
  for (const VerifiedRead& read : reads_) {
    if (read.copied) continue;
    Table& table = *read.table;
    const std::size_t rows = read.whole ? static_cast<std::size_t>(table.rows()) : read.ids.size();
    const bool narrowed = is_narrowed(encoding_, table.spec().dtype);
    if (narrowed) scratch_.resize(std::max(scratch_.size(), rows * table.row_bytes()));
    // Narrowed values are read by this core at once and may stay in its caches. Others may be meant
    // for another core.
    std::byte* to = narrowed ? scratch_.data() : out + bytes;
    const NextReader next = narrowed ? NextReader::kThisCore : next_reader_;
    if (read.whole)
      table.read_all(to, next);
    else
      table.read(read.ids, to, next);
    const std::size_t elements = rows * static_cast<std::size_t>(table.spec().dim());
    if (narrowed) narrow_to_bfloat16(reinterpret_cast<const float*>(to), elements, out + bytes);
    bytes += elements * wire_bytes(encoding_, table.spec().dtype);
    pulled += rows;
  }
  count(pulled, bytes);
}

// Only of one variable, whose rows then are the whole answer, as they lie. Values that are narrowed
// for the wire have to be written anew in any case.
std::shared_ptr<Loan> VerifiedPull::lend() {
  if (reads_.size() != 1) return nullptr;
  const VerifiedRead& read = reads_.front();
  Table& table = *read.table;
  if (read.copied || is_narrowed(encoding_, table.spec().dtype)) return nullptr;
  const std::optional<RowRange> rows = read.whole ? RowRange{0, table.rows()} : as_range(read.ids);
  auto loan = rows.has_value() ? table.lend(*rows) : nullptr;
  if (loan != nullptr)
    count(static_cast<std::size_t>(rows->size()),
          static_cast<std::size_t>(rows->size()) * table.row_bytes());
  return loan;
}

void VerifiedPull::count(std::size_t rows, std::size_t bytes) {
  ShardCounters::add(counters_.pulls.calls, 1);
  ShardCounters::add(counters_.pulls.rows, rows);
  ShardCounters::add(counters_.pulls.bytes, bytes);
}

}  // namespace cairn::ps
