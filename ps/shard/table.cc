#include "ps/shard/table.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"

namespace cairn::ps {

// Computed in floating point, which does not wrap: a shape from the wire may ask for more bytes
// than 64 bits count. A hashed table begins empty, and its growth is checked at each push.
std::size_t Table::bytes_for(const VariableSpec& spec, const UpdateRule& rule, RowRange range) {
  constexpr double kMost = 0x1p62;
  if (spec.hashed) return sizeof(Table);
  const auto element = static_cast<double>(dtype_bytes(spec.dtype));
  const double row =
      element * static_cast<double>(spec.dim()) * static_cast<double>(1 + rule_slots(rule).size());
  return static_cast<std::size_t>(std::min(
      kMost,
      static_cast<double>(range.size()) * (row + TouchedRows::kBytesARow + Snapshot::kBytesARow) +
          sizeof(Table)));
}

void Table::set_rule(const UpdateRule& rule) {
  // Another rule has other slots, so that the rows move in memory. Blocks that a checkpoint's
  // writer still wants are copied aside first, in the old layout. Loans go on reading the old
  // memory, which is not written to any more.
  const bool moves = !same_slots(rule, memory_.rule());
  if (moves) snapshot_.before_new_layout();
  memory_.set_rule(rule);
  if (!moves) return;
  snapshot_.laid_anew();
  lending_.forget();
}

// Readers by loan and a checkpoint's writer were promised the rows as they are. Before the rows
// change, both must have them, or copies.
void Table::before_write(std::span<const std::int64_t> places) {
  lending_.before_write(*memory_.arena(), places);
  snapshot_.before_write(places);
}

void Table::before_write_all() {
  lending_.before_write_all(*memory_.arena());
  snapshot_.before_write_all();
}

// Where the rows lie. Those that are not here yet are created, with their initial values: also some
// of them, if there is no memory for all.
Places Table::made(std::span<const std::int64_t> rows) {
  const Places found = memory_.find(rows);
  if (found.absent.empty()) return found;
  try {
    const Places made = memory_.make(found);
    snapshot_.grew();
    return made;
  } catch (const Error&) {
    snapshot_.grew();
    throw;
  }
}

void Table::update(const UpdateRule& rule, float learning_rate, std::span<const std::int64_t> rows,
                   const std::byte* values, bool continues) {
  // First the rows are made, then what is frozen or lent is copied aside, then they are noted as
  // touched, and only then do they change: making rows may fail for lack of memory, and must come
  // before anything else has happened.
  const Places places = made(rows);
  if (is_table_rule(rule.kind))
    before_write_all();
  else
    before_write(places.at);
  // Such a rule changes rows that are not named, too: none of them is at its initial value any
  // more, and a checkpoint has to hold them all.
  if (moves_untouched_rows(rule.kind))
    snapshot_.touch_all();
  else
    snapshot_.touch(places);
  memory_.update(rule, learning_rate, places, values, continues);
}

void Table::update_all(const UpdateRule& rule, float learning_rate, const std::byte* values) {
  before_write_all();
  snapshot_.touch_all();
  memory_.update_all(rule, learning_rate, values);
}

void Table::reset() {
  memory_.set_updates(0);
  if (hashed()) {
    if (held() == 0) return;
    CAIRN_CHECK(!snapshot_.frozen(), "'", spec().name, "' is frozen");
    memory_.reset();
    snapshot_.laid_anew();
    return;
  }
  if (snapshot_.untouched()) return;
  before_write_all();
  snapshot_.forget_touched();
  memory_.reset();
}

std::int64_t Table::put(const storage::StoredRows& stored, Slots take) {
  const RowLayout& layout = memory_.layout();
  if (stored.dtype != spec().dtype || stored.dim != layout.dim)
    throw DataLossError(str("the checkpoint's rows of '", spec().name, "' have ", stored.dim,
                            " elements of ", dtype_name(stored.dtype), ", those here ", layout.dim,
                            " of ", dtype_name(spec().dtype)));
  const bool same = take == Slots::kTake && stored.rule == rule().kind;
  const std::uint32_t slots = same ? std::min(stored.slots, layout.slots) : 0;
  std::vector<std::int64_t> here;
  std::vector<const std::byte*> from;
  for (std::size_t i = 0; i < stored.offsets.size(); ++i) {
    const std::int64_t row =
        stored.first_row + static_cast<std::int64_t>(stored.offsets[i]) - range().begin;
    if (row < 0 || row >= rows()) continue;
    here.push_back(row);
    from.push_back(stored.data.data() + i * stored.row_bytes());
  }
  const Places places = made(here);
  before_write(places.at);
  snapshot_.touch(places);
  for (std::size_t i = 0; i < places.at.size(); ++i) memory_.restore(places.at[i], from[i], slots);
  return static_cast<std::int64_t>(places.at.size());
}

}  // namespace cairn::ps
