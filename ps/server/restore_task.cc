// Restoring one shard: see checkpoint_tasks.h.
#include <optional>

#include "core/base/log.h"
#include "ps/server/checkpoint_tasks.h"
#include "ps/server/on_demand_restore.h"
#include "ps/server/shard_service.h"
#include "rpc/loop/on_offload.h"
#include "storage/database_place.h"
#include "storage/moved_rows.h"
#include "storage/range_read.h"
#include "storage/superseded_rows.h"

namespace cairn::ps {
namespace {

// So much is read and verified on the disk's thread while the shard's thread puts as much into the
// tables.
constexpr std::size_t kRestoredBatchBytes = std::size_t{2} << 20;

// Variables by name, and the rows of them that are wanted.
using WantedRanges = std::vector<std::pair<std::string, RowRange>>;

// A piece of one range of one database: its table records come before any of its rows.
struct ReadPiece {
  std::size_t range = 0;             // of the wanted ones
  std::uint64_t expected_bytes = 0;  // of all its rows; in its first piece alone
  std::vector<storage::TableRecord> tables;
  std::size_t begin = 0, end = 0;  // its blocks, of the batch's
};

struct ReadBatch {
  std::vector<ReadPiece> pieces;
  std::vector<std::pair<std::size_t, storage::SeenRows>> seen;  // of wanted ranges
  // Those behind the last piece's are left from earlier use: their memory is used again, as fresh
  // pages would take as long to get as the rows to read.
  std::vector<storage::StoredRows> blocks;
  bool last = false;
};

// Reads the databases one after the other, and of each the wanted ranges, one batch after the
// other. Lives on the disk's thread between two looks of the coroutine, as SaveJob does.
class RestoreReader {
 public:
  RestoreReader(storage::RowStore& store, std::string folder, std::vector<std::string> databases,
                WantedRanges wanted, RowMoves moves)
      : store_(store),
        folder_(std::move(folder)),
        databases_(std::move(databases)),
        wanted_(std::move(wanted)),
        moves_(std::move(moves)) {}

  const WantedRanges& wanted() const { return wanted_; }
  const RowMoves& moves() const { return moves_; }
  std::uint64_t read_bytes() const { return read_bytes_; }

  void read(ReadBatch& batch) {
    batch.pieces.clear();
    batch.seen.clear();
    if (superseded_.empty()) find_superseded(batch);
    std::size_t blocks = 0;
    for (std::size_t bytes = 0; bytes < kRestoredBatchBytes;) {
      batch.last = !range_.has_value() && !next_range(batch, blocks);
      if (batch.last) return;
      if (batch.pieces.empty()) batch.pieces.push_back({.range = at_, .begin = blocks});
      if (blocks == batch.blocks.size()) batch.blocks.emplace_back();
      if (range_->next(batch.blocks[blocks])) {
        if (move_ != nullptr) storage::move_rows(batch.blocks[blocks], *move_);
        bytes += batch.blocks[blocks++].data.size();
        batch.pieces.back().end = blocks;
      } else {
        range_.reset();
        ++at_;
      }
    }
  }

 private:
  std::unique_ptr<storage::DatabaseReader> open(std::size_t database) {
    return store_.open(storage::place_of(folder_, databases_[database]));
  }
  // The variable in the checkpoint, and its rows, that are read for a wanted range.
  std::pair<std::string, RowRange> source_of(std::size_t wanted) const {
    const auto& [variable, rows] = wanted_[wanted];
    const auto found = moves_.find(variable);
    if (found == moves_.end()) return {variable, rows};
    return {found->second.from, storage::rows_to_read(rows, found->second)};
  }
  void find_superseded(ReadBatch& batch) {
    superseded_.resize(wanted_.size() + 1);  // not empty from now on
    for (std::size_t i = 0; i < databases_.size(); ++i) {
      const auto reader = open(i);
      for (std::size_t wanted = 0; wanted < wanted_.size(); ++wanted) {
        const auto [variable, rows] = source_of(wanted);
        superseded_[wanted].look_into(*reader, variable, rows);
      }
      read_bytes_ += reader->read_bytes();
    }
    for (std::size_t wanted = 0; wanted < wanted_.size(); ++wanted) {
      // It says nothing where rows have other numbers now.
      const auto move = moves_.find(wanted_[wanted].first);
      if (move != moves_.end() && move->second.numbers != nullptr) continue;
      for (const storage::SeenRows& seen : superseded_[wanted].seen())
        batch.seen.emplace_back(wanted, seen);
    }
  }

  // Goes on to the next range that the database knows, or that the next one does. False: that was
  // all.
  bool next_range(ReadBatch& batch, std::size_t blocks) {
    for (;;) {
      if (reader_ == nullptr) {
        if (database_ == databases_.size()) return false;
        reader_ = open(database_++);
        at_ = 0;
      }
      for (; at_ < wanted_.size(); ++at_) {
        const std::string& variable = wanted_[at_].first;
        const auto found = moves_.find(variable);
        move_ = found == moves_.end() ? nullptr : &found->second;
        const auto [from, range] = source_of(at_);
        range_.emplace(*reader_, from, range, &superseded_[at_], database_ - 1);
        ReadPiece piece{.range = at_, .tables = range_->tables(), .begin = blocks, .end = blocks};
        if (move_ != nullptr)
          for (storage::TableRecord& record : piece.tables)
            storage::move_record(record, variable, *move_);
        if (!piece.tables.empty()) {
          piece.expected_bytes = range_->expected_bytes();
          batch.pieces.push_back(std::move(piece));
          return true;
        }
      }
      range_.reset();
      read_bytes_ += reader_->read_bytes();
      reader_.reset();
    }
  }

  storage::RowStore& store_;
  const std::string folder_;
  const std::vector<std::string> databases_;
  const WantedRanges wanted_;
  const RowMoves moves_;
  std::vector<storage::SupersededRows> superseded_;  // of the wanted ranges
  const RowMove* move_ = nullptr;  // of the range that is being read; null: its own rows
  std::size_t database_ = 0;       // the next one to open
  std::size_t at_ = 0;             // the wanted range that is being read
  std::unique_ptr<storage::DatabaseReader> reader_;
  std::optional<storage::RangeRead> range_;  // of reader_
  std::uint64_t read_bytes_ = 0;             // of the databases that are done
};

// A block of a batch, which others may hold on to.
struct BatchBlock {
  std::shared_ptr<const ReadBatch> batch;
  std::size_t index;
  std::string variable;
  std::int64_t part;
  const storage::StoredRows& rows() const { return batch->blocks[index]; }
};

// Puts a block into its table. Rows of it that are on the disk already, from an earlier database,
// come back first, and the later ones take their place before anything else happens.
rpc::Task<void> place_block(std::shared_ptr<ShardHost> host, std::uint64_t restore,
                            BatchBlock block) {
  while (host->shard.is_crowded()) {
    kj::Promise<void> went_on = host->store_to_go_on();
    co_await kj::mv(went_on);
  }
  host->shard.verify_restore(restore);
  auto pair = kj::newPromiseAndFulfiller<void>();
  const auto placed = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(pair.fulfiller));
  auto place = [host, restore, block, placed](std::exception_ptr error) {
    try {
      if (error != nullptr) std::rethrow_exception(error);
      host->shard.verify_restore(restore);
      host->shard.restore(block.rows(), block.variable, block.part);
      (*placed)->fulfill();
    } catch (...) {
      (*placed)->reject(rpc::to_kj(std::current_exception()));
    }
  };
  if (!host->shard.bring_restored(block.rows(), block.variable, block.part, place)) place(nullptr);
  co_await kj::mv(pair.promise);
}

// Puts the batch into the tables. Returns the bytes of the rows.
rpc::Task<std::uint64_t> place_rows(std::shared_ptr<ShardHost> host, std::uint64_t restore,
                                    const WantedRanges& wanted,
                                    std::shared_ptr<const ReadBatch> batch) {
  Shard& shard = host->shard;
  std::uint64_t bytes = 0;
  for (const auto& [range, seen] : batch->seen)
    shard.restore(seen, wanted[range].first, wanted[range].second.begin);
  for (const ReadPiece& piece : batch->pieces) {
    const auto& [variable, rows] = wanted[piece.range];
    for (const storage::TableRecord& record : piece.tables) shard.restore(record);
    if (piece.expected_bytes > 0) shard.expect(piece.expected_bytes, variable, rows.begin);
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
      bytes += batch->blocks[i].data.size();
      if (shard.restores_at_once(variable, rows.begin)) {
        shard.restore(batch->blocks[i], variable, rows.begin);
        continue;
      }
      BatchBlock block{batch, i, variable, rows.begin};
      co_await place_block(host, restore, std::move(block));
    }
  }
  co_return bytes;
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

void log_report(const ShardHost& host, const std::string& folder, const RestoreReport& report) {
  if (!report.missing.empty())
    log_warning(host.database, ": not in ", folder,
                ", at their initial values: ", joined(report.missing));
  if (!report.slots_reset.empty())
    log_warning(host.database, ": saved under another optimizer in ", folder,
                ", slots begin anew: ", joined(report.slots_reset));
}

// Slots that were not to come have not been reset for another reason.
void forget_asked_for(RestoreReport& report, const RowMoves& moves) {
  std::erase_if(report.slots_reset, [&moves](const std::string& variable) {
    const auto move = moves.find(variable);
    return move != moves.end() && !move->second.slots;
  });
}

}  // namespace

rpc::Task<RestoredRows> restore_shard(std::shared_ptr<ShardHost> host, std::string folder,
                                      std::vector<std::string> databases, AppliedSet applied,
                                      std::vector<VariableId> only, RowMoves moves) {
  for (const std::string& name : databases) storage::verify_database_name(name);
  const bool reads = !databases.empty();
  // The number names this restore. After each wait it is asked whether this restore is still the
  // one under way: the coordinator's next connection may have begun another one, whose rows must
  // not be overwritten.
  const std::uint64_t number = host->shard.begin_restore(only);
  // The ranges are copied before the first wait, as a configuration may add tables meanwhile.
  const auto reader = std::make_shared<RestoreReader>(host->store, folder, std::move(databases),
                                                      host->shard.ranges(), std::move(moves));
  auto ready = std::make_shared<ReadBatch>(), next = std::make_shared<ReadBatch>();
  RestoredRows restored;
  const auto read = [&host, reader](std::shared_ptr<ReadBatch> batch) {
    return rpc::on_offload(host->reactor, host->offload, host->lane,
                           [reader, batch] { reader->read(*batch); });
  };
  kj::Promise<void> reading = read(next);
  do {
    co_await kj::mv(reading);
    host->shard.verify_restore(number);
    std::swap(ready, next);
    // While the shard places this batch, the disk's thread reads the next one.
    if (!ready->last) reading = read(next);
    restored.bytes += co_await place_rows(host, number, reader->wanted(), ready);
  } while (!ready->last);
  restored.read_bytes = reader->read_bytes();
  restored.report = host->shard.end_restore(applied);
  forget_asked_for(restored.report, reader->moves());
  // A restore from no database is a new beginning, and nothing to report.
  if (reads) log_info(host->database, ": ", restored.report.rows, " rows restored from ", folder);
  if (reads) log_report(*host, folder, restored.report);
  co_return std::move(restored);
}

rpc::Task<RestoredRows> restore_on_demand(std::shared_ptr<ShardHost> host, std::string folder,
                                          std::vector<std::string> databases, AppliedSet applied,
                                          std::vector<VariableId> only, RowMoves moves) {
  for (const std::string& name : databases) storage::verify_database_name(name);
  const std::uint64_t number = host->shard.begin_restore(only);
  std::string obstacle = host->shard.on_demand_obstacle();
  if (obstacle.empty()) {
    const auto reader = std::make_shared<OnDemandReader>(host->store, folder, databases,
                                                         host->shard.ranges(), moves);
    kj::Promise<void> opened =
        rpc::on_offload(host->reactor, host->offload, host->lane, [reader] { reader->open(); });
    co_await kj::mv(opened);
    host->shard.verify_restore(number);
    obstacle = reader->obstacle();
    if (obstacle.empty()) {
      for (const storage::TableRecord& record : reader->records()) host->shard.restore(record);
      const auto restore = std::make_shared<OnDemandRestore>(reader);
      RestoredRows restored{.report = host->shard.end_restore_on_demand(applied, restore),
                            .later = true};
      forget_asked_for(restored.report, moves);
      log_info(host->database, ": rows are restored on demand from ", folder);
      log_report(*host, folder, restored.report);
      restore->begin(host, number);
      co_return std::move(restored);
    }
  }
  log_info(host->database, ": all rows are restored at once, and not on demand: ", obstacle);
  kj::Promise<RestoredRows> whole = restore_shard(host, std::move(folder), std::move(databases),
                                                  applied, std::move(only), std::move(moves))
                                        .start();
  co_return co_await kj::mv(whole);
}

rpc::Task<void> await_restore(std::shared_ptr<ShardHost> host) {
  while (host->shard.restoring()) {
    if (const std::exception_ptr error = host->shard.restore_error()) std::rethrow_exception(error);
    kj::Promise<void> went_on = host->restore_to_go_on();
    co_await kj::mv(went_on);
  }
}

}  // namespace cairn::ps
