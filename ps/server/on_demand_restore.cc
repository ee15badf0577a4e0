#include "ps/server/on_demand_restore.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/base/log.h"
#include "ps/server/shard_service.h"
#include "storage/moved_rows.h"
#include "storage/row_lookup.h"
#include "storage/superseded_rows.h"

namespace cairn::ps {
namespace {

// So many batches are streamed while rows are looked up: then the stream waits for the lookup.
constexpr int kBatchesBesideALookup = 4;

std::exception_ptr error_of_work(const std::function<void()>& work) {
  try {
    work();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

bool in_any(const std::vector<RowRange>& parts, std::int64_t row) {
  return std::any_of(parts.begin(), parts.end(),
                     [row](const RowRange& part) { return row >= part.begin && row < part.end; });
}

}  // namespace

OnDemandRestore::OnDemandRestore(storage::RowStore& store, std::string folder,
                                 std::vector<std::string> databases, Ranges wanted, RowMoves moves)
    : store_(store),
      folder_(std::move(folder)),
      databases_(std::move(databases)),
      moves_(std::move(moves)),
      streamed_(databases_.size()),
      looked_up_(databases_.size()) {
  for (auto& [variable, rows] : wanted) {
    const auto move = moves_.find(variable);
    Wanted one{.variable = variable, .from = variable, .rows = rows};
    if (move != moves_.end()) {
      one.from = move->second.from;
      one.move = &move->second;
    }
    one.next_row = rows.begin;
    wanted_.push_back(std::move(one));
  }
}

// ---- before it begins ----

void OnDemandRestore::open() {
  for (std::size_t database = 0; database < databases_.size(); ++database) open_database(database);
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    std::reverse(wanted_[i].sources.begin(), wanted_[i].sources.end());
    order_.push_back(i);
    if (wanted_[i].move != nullptr && wanted_[i].move->numbers != nullptr)
      obstacle_ = str("rows of '", wanted_[i].variable, "' get other numbers");
  }
  std::stable_sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
    return wanted_[a].bytes < wanted_[b].bytes;
  });
}

void OnDemandRestore::open_database(std::size_t database) {
  storage::DatabaseReader& opened = reader(streamed_, database);
  std::vector<std::pair<Wanted*, storage::RangeRead>> ranges;
  for (Wanted& wanted : wanted_) {
    // Rows are found newest first, and where they have gone would have to be known before.
    storage::SupersededRows said;
    said.look_into(opened, wanted.from, wanted.rows);
    if (!said.is_empty())
      obstacle_ = str("'", wanted.from, "' has rows that have gone, or were not admitted");
    storage::RangeRead range(opened, wanted.from, wanted.rows);
    Source source{database, {}};
    for (storage::TableRecord& record : range.tables()) {
      const RowRange common{std::max(record.rows.begin, wanted.rows.begin),
                            std::min(record.rows.end, wanted.rows.end)};
      if (common.size() > 0) source.parts.push_back(common);
      if (record.blocks_overlap)
        obstacle_ =
            str("'", wanted.from, "' was saved by an earlier release, whose blocks overlap");
      if (wanted.move != nullptr) storage::move_record(record, wanted.variable, *wanted.move);
      records_.push_back(std::move(record));
    }
    if (source.parts.empty()) continue;
    wanted.sources.push_back(std::move(source));
    ranges.emplace_back(&wanted, std::move(range));
  }
  for (auto& [wanted, range] : ranges) wanted->bytes += range.expected_bytes();
  opened.will_read({}, {});  // it was only asked how much that would be
}

storage::DatabaseReader& OnDemandRestore::reader(Readers& readers, std::size_t database) {
  auto& found = readers[database];
  if (found == nullptr) found = store_.open(folder_ + "/" + databases_[database]);
  return *found;
}

// ---- the stream ----

OnDemandRestore::Wanted* OnDemandRestore::next_wanted(const std::vector<std::size_t>& hurried) {
  for (const std::size_t i : hurried)
    if (!wanted_[i].done) return &wanted_[i];
  for (const std::size_t i : order_)
    if (!wanted_[i].done) return &wanted_[i];
  return nullptr;
}

// False: there are no more blocks of it.
bool OnDemandRestore::go_to_next_block(Wanted& wanted, storage::StoredRows& block) {
  for (; wanted.source < wanted.sources.size(); ++wanted.source) {
    if (range_ == nullptr) {
      range_ = std::make_unique<storage::RangeRead>(
          reader(streamed_, wanted.sources[wanted.source].database), wanted.from,
          RowRange{wanted.next_row, wanted.rows.end});
      range_->tables();
    }
    if (range_->next(block)) {
      wanted.next_row = block.first_row + static_cast<std::int64_t>(block.offsets.back()) + 1;
      if (wanted.move != nullptr) storage::move_rows(block, *wanted.move);
      return true;
    }
    range_.reset();
    wanted.next_row = wanted.rows.begin;
  }
  return false;
}

// A table that is left for one that is wanted more goes on later behind its last row.
void OnDemandRestore::read_batch(Batch& batch, const std::vector<std::size_t>& hurried) {
  batch.pieces.clear();
  std::size_t blocks = 0;
  for (std::size_t bytes = 0; bytes < batch_bytes_;) {
    Wanted* const wanted = next_wanted(hurried);
    batch.last = wanted == nullptr;
    if (batch.last) return;
    if (std::exchange(streaming_, wanted) != wanted) range_.reset();
    const auto index = static_cast<std::size_t>(wanted - wanted_.data());
    if (batch.pieces.empty() || batch.pieces.back().wanted != index)
      batch.pieces.push_back({.wanted = index, .begin = blocks, .end = blocks});
    Piece& piece = batch.pieces.back();
    if (!std::exchange(wanted->told_bytes, true)) piece.expected_bytes = wanted->bytes;
    if (blocks == batch.blocks.size()) batch.blocks.emplace_back();
    if (go_to_next_block(*wanted, batch.blocks[blocks])) {
      bytes += batch.blocks[blocks++].data.size();
      piece.end = blocks;
    } else {
      piece.last = wanted->done = true;
    }
  }
}

void OnDemandRestore::begin(const std::shared_ptr<ShardHost>& host, std::uint64_t restore) {
  host_ = host;
  batch_bytes_ = host->restore_batch_bytes;
  restore_ = restore;
  stream_on();
}

void OnDemandRestore::run(std::size_t lane, std::function<void()> work,
                          std::function<void(std::exception_ptr)> then) {
  const auto host = host_.lock();
  if (host == nullptr) return;
  auto job = [self = shared_from_this(), work = std::move(work), then = std::move(then),
              mailbox = host->reactor.mailbox()]() mutable {
    const std::exception_ptr error = error_of_work(work);
    mailbox->post([self = std::move(self), then = std::move(then), error] { then(error); });
  };
  host->offload.submit(lane, std::move(job));
}

void OnDemandRestore::stream_on() {
  const auto host = host_.lock();
  if (host == nullptr || reading_ || ended_ || error_ != nullptr) return;
  if (looking_up_ && batches_beside_ == kBatchesBesideALookup) return;
  if (looking_up_) ++batches_beside_;
  reading_ = true;
  run(
      host->lane, [this, batch = next_, hurried = hurried_] { read_batch(*batch, hurried); },
      [this](std::exception_ptr error) { batch_was_read(std::move(error)); });
}

// While the shard places this batch, the disk's thread reads the next one.
void OnDemandRestore::batch_was_read(std::exception_ptr error) {
  const auto host = host_.lock();
  if (host == nullptr) return;
  reading_ = false;
  if (error != nullptr) return fail(*host, error);
  std::swap(ready_, next_);
  ended_ = ready_->last || over(*host);
  stream_on();
  try {
    place(*ready_);
  } catch (const Error&) {
    return fail(*host, std::current_exception());
  }
  if (!ended_) return;
  log_info(host->database, ": all rows are restored from ", folder_);
  host->restore_went_on();
}

void OnDemandRestore::place(const Batch& batch) {
  const auto host = host_.lock();
  for (const Piece& piece : batch.pieces) {
    const Wanted& wanted = wanted_[piece.wanted];
    const std::int64_t part = wanted.rows.begin;
    if (!host->shard.restores_later(restore_, wanted.variable, part)) continue;
    if (piece.expected_bytes > 0)
      host->shard.expect_later(piece.expected_bytes, wanted.variable, part);
    for (std::size_t i = piece.begin; i < piece.end; ++i)
      host->shard.restore_later(batch.blocks[i], wanted.variable, part);
    if (!piece.last) continue;
    host->shard.end_restore_later(wanted.variable, part);
    host->restore_went_on();
  }
}

// Another restore has begun with all of its tables, or another session.
bool OnDemandRestore::over(const ShardHost& host) const {
  return std::none_of(wanted_.begin(), wanted_.end(), [&](const Wanted& wanted) {
    return host.shard.restores_later(restore_, wanted.variable, wanted.rows.begin);
  });
}

void OnDemandRestore::fail(ShardHost& host, const std::exception_ptr& error) {
  if (error_ != nullptr) return;
  error_ = error;
  host.shard.fail_restore_later(restore_, error);
  host.restore_went_on();
}

// ---- single rows ----

std::size_t OnDemandRestore::index_of(const Table& table) const {
  const auto found = std::find_if(wanted_.begin(), wanted_.end(), [&](const Wanted& wanted) {
    return wanted.rows == table.range() && wanted.variable == table.spec().name;
  });
  CAIRN_CHECK(found != wanted_.end(), "'", table.spec().name, "' is not being restored");
  return static_cast<std::size_t>(found - wanted_.begin());
}

void OnDemandRestore::hurry(const Table& table) {
  const std::size_t index = index_of(table);
  if (std::find(hurried_.begin(), hurried_.end(), index) == hurried_.end())
    hurried_.push_back(index);
  stream_on();
}

void OnDemandRestore::read(const Table& table, const std::vector<std::int64_t>& rows, Done done) {
  Lookup lookup{index_of(table), rows, std::move(done), {}};
  for (std::int64_t& row : lookup.rows) row += table.range().begin;
  waiting_.push_back(std::move(lookup));
  look_up_waiting();
}

// All that have come meanwhile are looked up together.
void OnDemandRestore::look_up_waiting() {
  const auto host = host_.lock();
  if (host == nullptr || looking_up_ || waiting_.empty()) return;
  looking_up_ = true;
  batches_beside_ = 0;
  const auto jobs = std::make_shared<std::vector<Lookup>>(std::exchange(waiting_, {}));
  auto work = [this, jobs, failed = error_] {
    if (failed != nullptr) std::rethrow_exception(failed);
    for (Lookup& lookup : *jobs) look_up(lookup);
  };
  run(host->pages_lane, std::move(work), [this, jobs](std::exception_ptr error) {
    const auto here = host_.lock();
    if (here == nullptr) return;
    looking_up_ = false;
    if (error != nullptr) fail(*here, error);
    look_up_waiting();
    for (const Lookup& lookup : *jobs) lookup.done(lookup.found, error);
    stream_on();
  });
}

void OnDemandRestore::look_up(Lookup& lookup) {
  Wanted& wanted = wanted_[lookup.wanted];
  for (const Source& source : wanted.sources) {
    const auto elsewhere =
        std::stable_partition(lookup.rows.begin(), lookup.rows.end(),
                              [&](std::int64_t row) { return in_any(source.parts, row); });
    std::vector<std::int64_t> others(elsewhere, lookup.rows.end());
    lookup.rows.erase(elsewhere, lookup.rows.end());
    if (!lookup.rows.empty())
      storage::RowLookup(reader(looked_up_, source.database), wanted.from)
          .take(lookup.rows, lookup.found);
    std::vector<std::int64_t> left;
    std::merge(lookup.rows.begin(), lookup.rows.end(), others.begin(), others.end(),
               std::back_inserter(left));
    lookup.rows = std::move(left);
    if (lookup.rows.empty()) break;
  }
  if (wanted.move == nullptr) return;
  for (storage::StoredRows& rows : lookup.found) storage::move_rows(rows, *wanted.move);
}

}  // namespace cairn::ps
