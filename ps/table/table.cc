#include "ps/table/table.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"

namespace cairn::ps {
namespace {

// The departures of a table with a memory limit take a 32nd of its budget at most: 8 bytes each.
constexpr std::size_t kBudgetOfDepartures = 32 * sizeof(std::int64_t), kDeparturesMin = 4096;

}  // namespace

Table::Table(std::shared_ptr<const VariableSpec> spec, const UpdateRule& rule, RowRange range,
             std::uint64_t seed, CopyPool& pool, const TableTier::Shared* tier)
    : memory_(std::move(spec), rule, range, seed),
      pool_(pool),
      turnover_(memory_.spec().policy.keeps_all() ? nullptr
                                                  : std::make_unique<RowTurnover>(memory_)),
      tier_(tier != nullptr && memory_.hashed()
                ? std::make_unique<TableTier>(memory_, *tier,
                                              str(memory_.spec().name, " rows ", range.begin),
                                              turnover_.get())
                : nullptr),
      snapshot_(memory_, pool,
                tier_ == nullptr && !evicts() ? Snapshot::Order::kRows : Snapshot::Order::kPlaces) {
  if (tier_ != nullptr)
    departures_ = std::make_unique<Departures>(
        std::clamp(tier->budget->bytes() / kBudgetOfDepartures, kDeparturesMin, Departures::kMost));
  else if (evicts())
    departures_ = std::make_unique<Departures>();
}

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

void Table::verify_new_rule(const UpdateRule& rule) const {
  if (tier_ == nullptr || tier_->records() == 0 || same_slots(rule, memory_.rule())) return;
  throw FailedPreconditionError(
      str("variable '", spec().name, "' has ", tier_->records(),
          " rows on the disk of this ps, written without the slots of ", rule_name(rule),
          ": give the variable its optimizer before rows are made, or restore a checkpoint"));
}

void Table::set_rule(const UpdateRule& rule) {
  // Another rule has other slots, so that the rows move in memory. Blocks that a checkpoint's
  // writer still wants are copied aside first, in the old layout. Loans go on reading the old
  // memory, which is not written to any more.
  const bool moves = !same_slots(rule, memory_.rule());
  verify_new_rule(rule);
  if (moves) snapshot_.before_new_layout();
  memory_.set_rule(rule);
  if (!moves) return;
  if (tier_ != nullptr) tier_->laid_anew();
  snapshot_.laid_anew();
  lending_.forget();
}

// Readers by loan and a checkpoint's writer were promised the rows as they are. Before the rows
// change, both must have them, or copies.
void Table::before_write(std::span<const std::int64_t> places) {
  lending_.before_write(*memory_.arena(), places);
  snapshot_.before_write(places);
}

// Also its record on the disk is not what the row is, from now on.
void Table::before_change(std::span<const std::int64_t> places) {
  before_write(places);
  if (tier_ != nullptr) tier_->change(places);
}

void Table::before_write_all() {
  lending_.before_write_all(*memory_.arena());
  snapshot_.before_write_all();
}

// The snapshot learns of the rows that `make` made, also of some of them, if there is no memory for
// all.
template <typename Make>
Places Table::grown_by(Make make) {
  try {
    const Places made = make();
    snapshot_.grew();
    return made;
  } catch (const Error&) {
    snapshot_.grew();
    throw;
  }
}

// Where the rows lie. Those that are not here yet are created, with their initial values.
Places Table::made(std::span<const std::int64_t> rows) {
  const Places found = memory_.find(rows);
  if (found.absent.empty()) return found;
  return grown_by([&] { return memory_.make(found); });
}

Places Table::made_to_restore(std::span<const std::int64_t> rows, std::uint32_t slots) {
  if (!hashed()) return memory_.find(rows);
  return grown_by([&] { return memory_.places_to_restore(rows, slots); });
}

void Table::update(const UpdateRule& rule, float learning_rate, std::span<const std::int64_t> rows,
                   const std::byte* values, bool continues) {
  if (rule == eviction_rule()) return let_go(memory_.present(rows));
  if (turnover_ != nullptr && !is_assignment(rule.kind)) {
    const RowTurnover::Rows admitted = turnover_->admit(memory_.find(rows), values);
    rows = admitted.rows;
    values = admitted.values;
  }
  // First the rows are made, then what is frozen or lent is copied aside, then they are noted as
  // touched, and only then do they change: making rows may fail for lack of memory, and must come
  // before anything else has happened.
  const Places places = made(rows);
  if (is_table_rule(rule.kind)) {
    before_write_all();
    snapshot_.all_change();
  } else {
    before_change(places.at);
  }
  // Such a rule changes rows that are not named, too: none of them is at its initial value any
  // more, and a checkpoint has to hold them all.
  if (moves_untouched_rows(rule.kind))
    snapshot_.touch_all();
  else
    snapshot_.touch(places);
  if (!followers_.empty()) {
    if (is_table_rule(rule.kind) || moves_untouched_rows(rule.kind))
      tell_all_changed();
    else
      tell_changed(places.at);
  }
  memory_.update(rule, learning_rate, places, values, continues);
  if (departures_ == nullptr) return;
  note_taken(places.at);
  if (!evicts()) return;
  turn_over();
  sweep();
}

void Table::update_all(const UpdateRule& rule, float learning_rate, const std::byte* values) {
  before_write_all();
  snapshot_.touch_all();
  if (!followers_.empty()) tell_all_changed();
  memory_.update_all(rule, learning_rate, values);
}

// A row that the checkpoint holds is not given its initial value first: the rows to be reset are
// known only at the end.
void Table::begin_restore() {
  tell_begins();
  memory_.set_updates(0);
  if (tier_ != nullptr) tier_->reset();
  if (turnover_ != nullptr) turnover_->reset();
  if (departures_ != nullptr) departures_->forget();
  gone_count_ = 0;
  taken_places_.clear();
  if (hashed()) {
    if (held() == 0) return;
    CAIRN_CHECK(!snapshot_.frozen(), "'", spec().name, "' is frozen");
    memory_.reset();
    snapshot_.laid_anew();
    return;
  }
  if (snapshot_.untouched()) return;
  before_write_all();
  TouchedRows& touched = snapshot_.touched_rows();
  touched.settle();
  if (!stale_.has_value()) stale_.emplace(rows());
  touched.for_each_range([this](RowRange range) { stale_->add(range); });
  touched.clear();
}

void Table::end_restore() {
  if (!stale_.has_value()) return;
  TouchedRows& touched = snapshot_.touched_rows();
  touched.settle();
  stale_->for_each_range([&](RowRange range) {
    for (std::int64_t row = range.begin; row < range.end;) {
      std::int64_t end = row;
      while (end < range.end && !touched.has(end)) ++end;
      memory_.reset({row, end});
      row = end + 1;
    }
  });
  stale_.reset();
}

void Table::reset_stale(std::span<const std::int64_t> rows) {
  if (!stale_.has_value()) return;
  TouchedRows& touched = snapshot_.touched_rows();
  touched.settle();
  stale_->settle();
  for (const std::int64_t row : rows)
    if (stale_->has(row) && !touched.has(row)) memory_.reset({row, row + 1});
}

std::vector<std::int64_t> Table::rows_of(const storage::StoredRows& stored) const {
  // Offsets ascend, so that the rows of this part lie together in the block.
  const auto [begin, end] = offsets_of_part(stored);
  const std::int64_t first = stored.first_row - range().begin;  // local; may be below 0
  std::vector<std::int64_t> here(static_cast<std::size_t>(end - begin));
  std::transform(
      stored.offsets.begin() + begin, stored.offsets.begin() + end, here.begin(),
      [first](std::uint64_t offset) { return first + static_cast<std::int64_t>(offset); });
  return here;
}

// As indices into the block's offsets.
std::pair<std::ptrdiff_t, std::ptrdiff_t> Table::offsets_of_part(
    const storage::StoredRows& stored) const {
  const std::int64_t first = stored.first_row - range().begin;
  const auto at = [&](std::int64_t row) {
    return std::lower_bound(stored.offsets.begin(), stored.offsets.end(), row - first,
                            [](std::uint64_t offset, std::int64_t wanted) {
                              return static_cast<std::int64_t>(offset) < wanted;
                            }) -
           stored.offsets.begin();
  };
  return {at(0), at(rows())};
}

std::int64_t Table::put(const storage::StoredRows& stored, Slots take) {
  const Places places = put(stored, take, Change::kYes);
  if (departures_ != nullptr) note_taken(places.at);
  return static_cast<std::int64_t>(places.at.size());
}

Places Table::put(const storage::StoredRows& stored, Slots take, Change change) {
  const RowLayout& layout = memory_.layout();
  if (stored.dtype != spec().dtype || stored.dim != layout.dim)
    throw DataLossError(str("the checkpoint's rows of '", spec().name, "' have ", stored.dim,
                            " elements of ", dtype_name(stored.dtype), ", those here ", layout.dim,
                            " of ", dtype_name(spec().dtype)));
  const bool same = take == Slots::kTake && stored.rule == rule().kind;
  const std::uint32_t slots = same ? std::min(stored.slots, layout.slots) : 0;
  const std::vector<std::int64_t> here = rows_of(stored);
  if (here.empty()) return {};
  // Slots that do not come with the rows must be initial ones, and not those of before.
  if (slots < layout.slots) end_restore();
  const Places places = made_to_restore(here, slots);
  before_change(places.at);
  if (change == Change::kYes) {
    snapshot_.touch(places);
    tell_changed(places.at);
  }
  const std::size_t row_bytes = stored.row_bytes();
  const auto skipped = static_cast<std::size_t>(offsets_of_part(stored).first);
  memory_.restore(places, stored.data.data() + skipped * row_bytes, row_bytes, slots);
  return places;
}

// Each piece of a part that was cut since has all that was seen of it, and one of them the count.
void Table::put(const storage::SeenRows& seen) {
  if (turnover_ == nullptr) return;
  const bool here = seen.rows.begin >= range().begin && seen.rows.begin < range().end;
  turnover_->restore(here ? seen.dropped : 0, seen.sketch);
}

storage::StoredRows Table::rows_at(RowRange places) const {
  std::vector<std::int64_t> at;
  for (std::int64_t place = places.begin; place < places.end; ++place)
    if (memory_.row_at(place) != IdIndex::kFree) at.push_back(place);
  return rows_of_places(std::move(at));
}

storage::StoredRows Table::rows_of_places(std::vector<std::int64_t> at) const {
  storage::StoredRows out = saved_layout();
  if (at.empty()) return out;
  if (hashed())
    std::ranges::sort(at, {}, [this](std::int64_t place) { return memory_.row_at(place); });
  const std::int64_t first = memory_.row_at(at.front());
  out.first_row = range().begin + first;
  out.offsets.reserve(at.size());
  for (const std::int64_t place : at)
    out.offsets.push_back(static_cast<std::uint64_t>(memory_.row_at(place) - first));
  out.data.resize(at.size() * saved_row_bytes());
  memory_.save(at, out.data.data());
  return out;
}

void Table::freeze(Snapshot::Rows rows, Snapshot::Tracking tracking) {
  seen_.reset();
  if (turnover_ != nullptr) seen_ = {range(), turnover_->dropped(), turnover_->saved()};
  if (departures_ != nullptr)
    freeze_places(rows, tracking);
  else
    snapshot_.freeze(rows, tracking);
  whole_in_delta_ = hashed() && rows != Snapshot::Rows::kAll && snapshot_.holds_all();
}

std::size_t Table::bytes_beside() const {
  return (turnover_ == nullptr ? 0 : turnover_->bytes()) +
         (departures_ == nullptr ? 0 : departures_->bytes());
}

void Table::thaw() {
  snapshot_.thaw();
  cold_.reset();
  seen_.reset();
}

// ---- subscribers ----

TableChanges* Table::follower(std::uint64_t subscriber) {
  const auto at =
      std::ranges::find(followers_, subscriber, [](const auto& one) { return one.first; });
  return at == followers_.end() ? nullptr : at->second.get();
}

TableChanges& Table::follow(std::uint64_t subscriber) {
  if (TableChanges* const there = follower(subscriber)) return *there;
  return *followers_.emplace_back(subscriber, std::make_unique<TableChanges>()).second;
}

void Table::unfollow(std::uint64_t subscriber) {
  std::erase_if(followers_, [subscriber](const auto& one) { return one.first == subscriber; });
}

// A given initial value is not told to subscribers: each of its rows is to be sent.
void Table::mark_touched(TouchedRows& places) {
  if (!hashed()) {
    if (spec().initializer.kind == Initializer::Kind::kValue)
      return places.add(RowRange{0, rows()});
    TouchedRows& touched = snapshot_.touched_rows();
    touched.settle();
    return touched.for_each_range([&places](RowRange range) { places.add(range); });
  }
  if (used() == held()) return places.add(RowRange{0, held()});
  for (std::int64_t place = 0; place < held(); ++place)
    if (memory_.row_at(place) != IdIndex::kFree) places.add({&place, 1});
}

void Table::add_places(std::span<const std::int64_t> rows, std::vector<std::int64_t>& places) {
  const std::size_t first = places.size();
  const Places found = memory_.find(rows);
  places.insert(places.end(), found.at.begin(), found.at.end());
  for (const std::size_t i : found.absent) places[first + i] = -1;
}

void Table::add_rows_at(std::span<const std::int64_t> places, std::vector<std::int64_t>& rows,
                        std::vector<std::byte>& values) const {
  const std::size_t before = values.size();
  values.resize(before + places.size() * row_bytes());
  for (const std::int64_t place : places) rows.push_back(memory_.row_at(place));
  memory_.read(Places{places, places, {}, {}}, values.data() + before);
}

void Table::tell_changed(std::span<const std::int64_t> places) {
  for (const auto& [subscriber, changes] : followers_) changes->changed(places, held());
}

void Table::tell_all_changed() {
  for (const auto& [subscriber, changes] : followers_) changes->all_changed(held());
}

void Table::tell_left(std::span<const std::int64_t> places, std::span<const std::int64_t> rows,
                      TableChanges::To to) {
  for (const auto& [subscriber, changes] : followers_)
    for (std::size_t i = 0; i < rows.size(); ++i) changes->leaves(places[i], rows[i], to);
}

void Table::tell_begins() {
  for (const auto& [subscriber, changes] : followers_) changes->begin_anew();
}

}  // namespace cairn::ps
