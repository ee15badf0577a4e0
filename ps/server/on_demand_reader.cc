#include "ps/server/on_demand_reader.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "storage/checkpoint_folder.h"
#include "storage/database_place.h"
#include "storage/moved_rows.h"
#include "storage/row_lookup.h"

namespace cairn::ps {
namespace {

bool in_any(const std::vector<RowRange>& parts, std::int64_t row) {
  return std::any_of(parts.begin(), parts.end(),
                     [row](const RowRange& part) { return row >= part.begin && row < part.end; });
}

}  // namespace

OnDemandReader::OnDemandReader(storage::RowStore& store, std::string folder,
                               std::vector<std::string> databases, Ranges wanted, RowMoves moves)
    : store_(store),
      folder_(std::move(folder)),
      databases_(std::move(databases)),
      wanted_(std::move(wanted)),
      moves_(std::move(moves)),
      streamed_(databases_.size()) {
  for (Readers& readers : looked_up_) readers.resize(databases_.size());
  for (const auto& [variable, rows] : wanted_) {
    const auto move = moves_.find(variable);
    Reading reading{.from = variable, .next_row = rows.begin};
    if (move != moves_.end()) {
      reading.from = move->second.from;
      reading.move = &move->second;
      if (move->second.numbers != nullptr)
        obstacle_ = str("rows of '", variable, "' get other numbers");
    }
    readings_.push_back(std::move(reading));
  }
}

void OnDemandReader::open() {
  for (std::size_t database = 0; database < databases_.size(); ++database) open_database(database);
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    std::reverse(readings_[i].sources.begin(), readings_[i].sources.end());
    std::erase_if(readings_[i].sources, [&](const Source& source) {
      return !readings_[i].superseded.any_counts(source.database, wanted_[i].second);
    });
    bytes_ += readings_[i].bytes;
    order_.push_back(i);
  }
  std::stable_sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
    return readings_[a].bytes < readings_[b].bytes;
  });
}

void OnDemandReader::open_database(std::size_t database) {
  storage::DatabaseReader& opened = reader(streamed_, database);
  std::vector<std::pair<Reading*, storage::RangeRead>> ranges;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const auto& [variable, rows] = wanted_[i];
    Reading& reading = readings_[i];
    reading.superseded.look_into(opened, reading.from, rows);
    storage::RangeRead range(opened, reading.from, rows);
    Source source{database, {}};
    for (storage::TableRecord& record : range.tables()) {
      const RowRange common{std::max(record.rows.begin, rows.begin),
                            std::min(record.rows.end, rows.end)};
      if (common.size() > 0) source.parts.push_back(common);
      if (record.blocks_overlap)
        obstacle_ = str("an earlier release saved '", reading.from, "', in blocks that overlap");
      if (reading.move != nullptr) storage::move_record(record, variable, *reading.move);
      records_.push_back(std::move(record));
    }
    if (source.parts.empty()) continue;
    reading.sources.push_back(std::move(source));
    ranges.emplace_back(&reading, std::move(range));
  }
  for (auto& [reading, range] : ranges) reading->bytes += range.expected_bytes();
  opened.will_read({}, {});  // it was only asked how much that would be
}

storage::DatabaseReader& OnDemandReader::reader(Readers& readers, std::size_t database) {
  auto& found = readers[database];
  if (found == nullptr) found = store_.open(storage::place_of(folder_, databases_[database]));
  return *found;
}

// ---- the stream ----

// SIZE_MAX: there is none.
std::size_t OnDemandReader::next_wanted(const std::vector<std::size_t>& hurried) const {
  for (const std::size_t i : hurried)
    if (!readings_[i].done) return i;
  for (const std::size_t i : order_)
    if (!readings_[i].done) return i;
  return SIZE_MAX;
}

// False: there are no more blocks of it.
bool OnDemandReader::go_to_next_block(std::size_t wanted, storage::StoredRows& block) {
  Reading& reading = readings_[wanted];
  const RowRange rows = wanted_[wanted].second;
  for (; reading.source < reading.sources.size(); ++reading.source) {
    if (range_ == nullptr) {
      range_ = std::make_unique<storage::RangeRead>(
          reader(streamed_, reading.sources[reading.source].database), reading.from,
          RowRange{reading.next_row, rows.end}, &reading.superseded,
          reading.sources[reading.source].database);
      range_->tables();
    }
    if (range_->next(block)) {
      reading.next_row = block.first_row + static_cast<std::int64_t>(block.offsets.back()) + 1;
      if (reading.move != nullptr) storage::move_rows(block, *reading.move);
      return true;
    }
    range_.reset();
    reading.next_row = rows.begin;
  }
  return false;
}

void OnDemandReader::read(Batch& batch, std::size_t bytes,
                          const std::vector<std::size_t>& hurried) {
  try {
    read_batch(batch, bytes, hurried);
  } catch (const Error&) {
    fail(std::current_exception());
  }
}

// The first error ends the restore, so that all threads may have the same one: they look for a
// sound checkpoint once.
void OnDemandReader::fail(const std::exception_ptr& error) {
  std::call_once(failed_,
                 [&] { failure_ = storage::with_sound_checkpoint(error, store_, folder_); });
  std::rethrow_exception(failure_);
}

// A table that is left for one that is wanted more goes on later behind its last row.
void OnDemandReader::read_batch(Batch& batch, std::size_t bytes,
                                const std::vector<std::size_t>& hurried) {
  batch.pieces.clear();
  std::size_t blocks = 0;
  for (std::size_t taken = 0; taken < bytes;) {
    const std::size_t wanted = next_wanted(hurried);
    batch.last = wanted == SIZE_MAX;
    if (batch.last) return;
    if (std::exchange(streaming_, wanted) != wanted) range_.reset();
    if (batch.pieces.empty() || batch.pieces.back().wanted != wanted)
      batch.pieces.push_back({.wanted = wanted, .begin = blocks, .end = blocks});
    Piece& piece = batch.pieces.back();
    Reading& reading = readings_[wanted];
    if (!std::exchange(reading.told_bytes, true)) piece.expected_bytes = reading.bytes;
    if (blocks == batch.blocks.size()) batch.blocks.emplace_back();
    if (go_to_next_block(wanted, batch.blocks[blocks])) {
      taken += batch.blocks[blocks++].data.size();
      piece.end = blocks;
    } else {
      piece.last = reading.done = true;
    }
  }
}

// ---- single rows ----

void OnDemandReader::look_up(std::size_t wanted, std::size_t lane, std::vector<std::int64_t>& rows,
                             std::vector<storage::StoredRows>& found) {
  try {
    look_up_rows(wanted, lane, rows, found);
  } catch (const Error&) {
    fail(std::current_exception());
  }
}

void OnDemandReader::look_up_rows(std::size_t wanted, std::size_t lane,
                                  std::vector<std::int64_t>& rows,
                                  std::vector<storage::StoredRows>& found) {
  const Reading& reading = readings_[wanted];
  for (const Source& source : reading.sources) {
    if (rows.empty()) break;
    const auto elsewhere = std::stable_partition(
        rows.begin(), rows.end(), [&](std::int64_t row) { return in_any(source.parts, row); });
    const std::vector<std::int64_t> others(elsewhere, rows.end());
    rows.erase(elsewhere, rows.end());
    std::vector<storage::StoredRows> here;
    if (!rows.empty())
      storage::RowLookup(reader(looked_up_[lane], source.database), reading.from).take(rows, here);
    // Those that have gone since are in no older database either.
    for (storage::StoredRows& some : here) {
      reading.superseded.take_out(source.database, some);
      found.push_back(std::move(some));
    }
    std::vector<std::int64_t> left;
    std::merge(rows.begin(), rows.end(), others.begin(), others.end(), std::back_inserter(left));
    rows = std::move(left);
  }
  if (reading.move == nullptr) return;
  for (storage::StoredRows& some : found) storage::move_rows(some, *reading.move);
}

}  // namespace cairn::ps
