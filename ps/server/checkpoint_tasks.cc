#include "ps/server/checkpoint_tasks.h"

#include <deque>

#include "core/base/log.h"
#include "ps/server/shard_service.h"
#include "ps/server/sorted_runs.h"
#include "rpc/loop/on_offload.h"

namespace cairn::ps {
namespace {

// Batches that wait for the disk's thread or are with it: enough that it need not wait for this
// loop's next turn.
constexpr std::size_t kBatchesAhead = 3;
// So many rows on a disk are read at a time: some requests of a megabyte.
constexpr std::size_t kRowsARead = 16 << 10;

using Batch = std::vector<Shard::FrozenRecord>;

Batch take_batch(ShardHost& host, std::uint64_t attempt) {
  Batch batch;
  for (std::size_t bytes = 0; bytes < host.save_batch_bytes;) {
    if (!batch.empty() && !host.shard.next_prepared(attempt)) break;
    std::optional<Shard::FrozenRecord> record = host.shard.next_frozen(attempt);
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
  storage::ChosenEncoding encoding;
  SavedDatabase saved;

  void begin(storage::RowStore& store, const std::string& folder) { writer = store.create(folder); }
  void write(const Batch& batch) {
    for (const auto& [key, record] : batch) {
      const std::string bytes = storage::encode(key);
      const storage::BlockForm form = encoding.form_of(key.variable);
      const std::string value = std::visit(
          [&bytes, &form](const auto& any) { return storage::encode(bytes, any, form); }, record);
      writer->put(bytes, value);
      saved.bytes += value.size();
      if (const auto* rows = std::get_if<storage::StoredRows>(&record))
        saved.rows += static_cast<std::uint64_t>(rows->rows());
    }
  }
};

// The frozen tables thaw however the save ends, also by an error or with its connection: if the
// mark stayed, every write would copy rows aside that no save reads.
struct DropMark {
  ~DropMark() { shard.drop_mark(attempt); }
  Shard& shard;
  std::uint64_t attempt;
};

// Has another thread take the pages that copies aside are about to need. If the shard's thread took
// them, in the middle of pushes, all that wait for it would wait for the system too.
class PagesAhead {
 public:
  PagesAhead(ShardHost& host, std::uint64_t attempt) : host_(host), attempt_(attempt) {}

  void look() {
    const std::size_t wanted = busy_ ? 0 : host_.shard.wants_copy_chunks(attempt_);
    if (wanted == 0) return;
    busy_ = true;
    const auto chunks = std::make_shared<Chunks>();
    auto take = [chunks, wanted] {
      while (chunks->size() < wanted) {
        chunks->emplace_back(CopyPool::kChunkBytes);
        chunks->back().take_pages();
      }
    };
    // Without memory the shard finds out by itself, and says so.
    taking_ = rpc::on_offload(host_.reactor, host_.offload, host_.pages_lane, std::move(take))
                  .then([this, chunks] { give(*chunks); },
                        [this, chunks](kj::Exception&&) { give(*chunks); })
                  .eagerlyEvaluate(nullptr);
  }

 private:
  using Chunks = std::vector<Arena>;

  void give(Chunks& chunks) {
    busy_ = false;
    for (Arena& chunk : chunks) host_.shard.add_copy_chunk(attempt_, std::move(chunk));
  }

  ShardHost& host_;
  std::uint64_t attempt_;
  bool busy_ = false;
  kj::Promise<void> taking_ = kj::READY_NOW;  // ends with it: what it would call is `this`
};

// The work of a save that the disk's thread has still to do: so much that it need not wait for
// this loop's next turn, and no more.
class Writes {
 public:
  explicit Writes(ShardHost& host) : host_(host) {}

  // After a failure nothing is done any more: the folder is about to be removed.
  void begin(std::function<void()> work) {
    auto unless_failed = [failed = failed_, work = std::move(work)] {
      if (std::exchange(*failed, true)) return;
      work();
      *failed = false;
    };
    under_way_.push_back(
        rpc::on_offload(host_.reactor, host_.offload, host_.lane, std::move(unless_failed)));
  }
  // Waits until one more may begin.  Errors  what one of them ended with.
  rpc::Task<void> have_room() { return wait(kBatchesAhead - 1); }
  // Waits for all of them, also after an error: the caller may remove the folder then.
  rpc::Task<void> end() { return wait(0); }

 private:
  rpc::Task<void> wait(std::size_t most) {
    while (under_way_.size() > most) {
      kj::Promise<void> first = kj::mv(under_way_.front());
      under_way_.pop_front();
      try {
        co_await kj::mv(first);
      } catch (...) {
        if (!error_) error_ = std::current_exception();
      }
    }
    if (error_) std::rethrow_exception(error_);
  }

  ShardHost& host_;
  std::deque<kj::Promise<void>> under_way_;
  std::exception_ptr error_;
  // The disk's thread alone looks at it.
  std::shared_ptr<bool> failed_ = std::make_shared<bool>(false);
};

// The tables, and the rows of those that are all in memory, in the order of their keys.
rpc::Task<void> save_ordered(ShardHost& host, std::uint64_t attempt, std::shared_ptr<SaveJob> job,
                             Writes& writes) {
  PagesAhead pages(host, attempt);
  for (;;) {
    if (!host.shard.next_prepared(attempt)) {
      host.shard.prepare_next(attempt);
      co_await host.reactor.yield();
      continue;
    }
    co_await writes.have_room();
    const auto batch = std::make_shared<const Batch>(take_batch(host, attempt));
    if (batch->empty()) co_return;
    writes.begin([job, batch] { job->write(*batch); });
    pages.look();
    co_await host.reactor.yield();  // pulls and pushes that came meanwhile
  }
}

// The rows of the others that were in memory.
rpc::Task<void> save_unordered(ShardHost& host, std::uint64_t attempt,
                               std::shared_ptr<SortedRuns> runs, Writes& writes) {
  using Rows = std::vector<UnorderedRows>;
  PagesAhead pages(host, attempt);
  for (;;) {
    co_await writes.have_room();
    const auto batch = std::make_shared<Rows>();
    for (std::size_t bytes = 0; bytes < host.save_batch_bytes;) {
      std::optional<UnorderedRows> rows = host.shard.next_unordered(attempt);
      if (!rows.has_value()) break;
      bytes += rows->rows.data.size() + rows->gone.size() * sizeof(std::int64_t);
      batch->push_back(std::move(*rows));
    }
    if (batch->empty()) co_return;
    writes.begin([runs, batch] {
      for (UnorderedRows& rows : *batch) runs->add(rows.table, std::move(rows.rows), rows.gone);
    });
    pages.look();
    co_await host.reactor.yield();
  }
}

// And those that were on the disk.
rpc::Task<void> save_elsewhere(ShardHost& host, std::uint64_t attempt,
                               std::shared_ptr<SortedRuns> runs, Writes& writes) {
  using Rows = std::shared_ptr<RowsElsewhere>;
  for (;;) {
    co_await writes.have_room();
    auto pair = kj::newPromiseAndFulfiller<Rows>();
    const auto read = std::make_shared<kj::Own<kj::PromiseFulfiller<Rows>>>(kj::mv(pair.fulfiller));
    auto done = [read](RowsElsewhere rows) {
      (*read)->fulfill(std::make_shared<RowsElsewhere>(std::move(rows)));
    };
    if (!host.shard.next_elsewhere(attempt, kRowsARead, std::move(done))) co_return;
    const Rows rows = co_await kj::mv(pair.promise);
    if (rows->read.error) std::rethrow_exception(rows->read.error);
    writes.begin([runs, rows] {
      runs->add(rows->table, rows->layout, rows->read.keys, std::move(rows->read.rows));
    });
  }
}

}  // namespace

rpc::Task<std::vector<SavedDatabase>> save_shard(std::shared_ptr<ShardHost> host,
                                                 std::uint64_t attempt, std::string folder,
                                                 storage::ChosenEncoding encoding) {
  host->shard.begin_save(attempt);
  const DropMark drop{host->shard, attempt};
  if (const auto whole = host->shard.whole_in_delta(attempt); !whole.empty())
    log_info(host->database, ": a delta with all rows of ", whole,
             ", as their rules change every row, or it is not known which did");
  const std::string path = folder + "/" + host->database;
  const auto job = std::make_shared<SaveJob>();
  job->encoding = encoding;
  const auto runs =
      std::make_shared<SortedRuns>(host->store, path, host->run_bytes, std::move(encoding));
  const auto saved = std::make_shared<std::vector<SavedDatabase>>();
  Writes writes(*host);
  std::exception_ptr error;
  try {
    writes.begin([job, &store = host->store, path] { job->begin(store, path); });
    co_await save_ordered(*host, attempt, job, writes);
    writes.begin([job, saved] {
      job->saved.files = job->writer->finish();
      saved->push_back(std::move(job->saved));
    });
    co_await save_unordered(*host, attempt, runs, writes);
    co_await save_elsewhere(*host, attempt, runs, writes);
    writes.begin([runs, saved] {
      for (SavedDatabase& run : runs->finish()) saved->push_back(std::move(run));
    });
  } catch (...) {
    error = std::current_exception();
  }
  try {
    co_await writes.end();
  } catch (...) {
    if (!error) error = std::current_exception();
  }
  if (error) std::rethrow_exception(error);
  co_return std::move(*saved);
}

}  // namespace cairn::ps
