#include "ps/server/checkpoint_tasks.h"

#include "core/base/log.h"
#include "ps/server/shard_service.h"
#include "rpc/loop/on_offload.h"
#include "storage/range_read.h"

namespace cairn::ps {
namespace {

// So much is gathered on the shard's loop, or read on the disk's thread, at a time: pulls and
// pushes come between two batches, and the memory for a save is bounded.
constexpr std::size_t kBatchBytes = std::size_t{1} << 20;

using Batch = std::vector<Shard::FrozenRecord>;

Batch take_batch(Shard& shard, std::uint64_t attempt) {
  Batch batch;
  for (std::size_t bytes = 0; bytes < kBatchBytes;) {
    std::optional<Shard::FrozenRecord> record = shard.next_frozen(attempt);
    if (!record.has_value()) break;
    const auto* rows = std::get_if<storage::StoredRows>(&record->second);
    bytes += rows == nullptr ? 256 : rows->data.size() + 256;
    batch.push_back(std::move(*record));
  }
  return batch;
}

// The disk's thread works on a SaveJob; the coroutine looks at it only between two pieces of work.
struct SaveJob {
  std::unique_ptr<storage::DatabaseWriter> writer;
  SavedDatabase saved;

  void write(const Batch& batch) {
    for (const auto& [key, record] : batch) {
      const std::string bytes = storage::encode(key);
      const std::string value =
          std::visit([&bytes](const auto& any) { return storage::encode(bytes, any); }, record);
      writer->put(bytes, value);
      saved.bytes += value.size();
      if (const auto* rows = std::get_if<storage::StoredRows>(&record))
        saved.rows += static_cast<std::uint64_t>(rows->rows());
    }
  }
};

// The frozen tables thaw however the save ends, also by an error or with its connection: if the
// mark stayed, every write would copy blocks aside that no save reads.
struct DropMark {
  ~DropMark() { shard.drop_mark(attempt); }
  Shard& shard;
  std::uint64_t attempt;
};

// Lives on the disk's thread between two looks of the coroutine, as SaveJob does.
struct RestoreJob {
  std::unique_ptr<storage::DatabaseReader> reader;
  std::unique_ptr<storage::RangeRead> range;
  std::vector<storage::TableRecord> tables;
  std::vector<storage::StoredRows> rows;
  bool more = false;

  void begin(const std::string& variable, RowRange wanted) {
    range = std::make_unique<storage::RangeRead>(*reader, variable, wanted);
    tables = range->tables();
    more = !tables.empty();
    read();
  }
  void read() {
    rows.clear();
    if (more) more = range->read(rows, kBatchBytes);
  }
};

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

void log_report(const ShardHost& host, const std::string& folder, const RestoreReport& report) {
  log_info(host.database, ": ", report.rows, " rows restored from ", folder);
  if (!report.missing.empty())
    log_warning(host.database, ": not in ", folder,
                ", at their initial values: ", joined(report.missing));
  if (!report.slots_reset.empty())
    log_warning(host.database, ": saved under another optimizer in ", folder,
                ", slots begin anew: ", joined(report.slots_reset));
}

}  // namespace

rpc::Task<SavedDatabase> save_shard(std::shared_ptr<ShardHost> host, std::uint64_t attempt,
                                    std::string folder) {
  host->shard.begin_save(attempt);
  const DropMark drop{host->shard, attempt};
  const auto job = std::make_shared<SaveJob>();
  auto create = [job, &store = host->store, path = folder + "/" + host->database] {
    job->writer = store.create(path);
  };
  kj::Promise<void> writing =
      rpc::on_offload(host->reactor, host->offload, host->lane, std::move(create));
  for (;;) {
    // The next batch is gathered while the disk's thread writes the one before, and there are never
    // more than two.
    const auto batch = std::make_shared<const Batch>(take_batch(host->shard, attempt));
    co_await kj::mv(writing);
    if (batch->empty()) break;
    auto write = [job, batch] { job->write(*batch); };
    writing = rpc::on_offload(host->reactor, host->offload, host->lane, std::move(write));
    co_await host->reactor.yield();  // pulls and pushes that came meanwhile
  }
  auto finish = [job] { job->saved.files = job->writer->finish(); };
  co_await rpc::on_offload(host->reactor, host->offload, host->lane, std::move(finish));
  co_return std::move(job->saved);
}

rpc::Task<RestoredRows> restore_shard(std::shared_ptr<ShardHost> host, std::string folder,
                                      std::vector<std::string> databases, AppliedSet applied,
                                      std::vector<VariableId> only) {
  for (const std::string& name : databases) storage::verify_database_name(name);
  // The number names this restore. After each wait it is asked whether this restore is still the
  // one under way: the coordinator's next connection may have begun another one, whose rows must
  // not be overwritten.
  const std::uint64_t number = host->shard.begin_restore(only);
  // Copied before the first wait, as a configuration may add tables meanwhile.
  const auto ranges = host->shard.ranges();
  const auto job = std::make_shared<RestoreJob>();
  RestoredRows restored;
  for (const std::string& name : databases) {
    auto open = [job, &store = host->store, path = folder + "/" + name] {
      job->reader = store.open(path);
    };
    co_await rpc::on_offload(host->reactor, host->offload, host->lane, std::move(open));
    for (const auto& [variable, rows] : ranges) {
      auto begin = [job, variable = variable, rows = rows] { job->begin(variable, rows); };
      co_await rpc::on_offload(host->reactor, host->offload, host->lane, std::move(begin));
      host->shard.verify_restore(number);
      for (const storage::TableRecord& record : job->tables) host->shard.restore(record);
      for (;;) {
        for (const storage::StoredRows& block : job->rows) {
          host->shard.restore(block, variable);
          restored.bytes += block.data.size();
        }
        if (!job->more) break;
        auto read = [job] { job->read(); };
        co_await rpc::on_offload(host->reactor, host->offload, host->lane, std::move(read));
        host->shard.verify_restore(number);
      }
    }
  }
  host->shard.verify_restore(number);
  restored.report = host->shard.end_restore(applied);
  // A restore from no database is a new beginning, and nothing to report.
  if (!databases.empty()) log_report(*host, folder, restored.report);
  co_return std::move(restored);
}

}  // namespace cairn::ps
