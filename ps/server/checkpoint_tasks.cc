#include "ps/server/checkpoint_tasks.h"

#include <deque>

#include "core/base/log.h"
#include "ps/server/shard_service.h"
#include "rpc/loop/on_offload.h"

namespace cairn::ps {
namespace {

// Batches that wait for the disk's thread or are with it: enough that it need not wait for this
// loop's next turn.
constexpr std::size_t kBatchesAhead = 3;

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
  bool sound = false;

  void begin(storage::RowStore& store, const std::string& folder) {
    writer = store.create(folder);
    sound = true;
  }
  // After a failure nothing is written any more: the folder is about to be removed.
  void write(const Batch& batch) {
    if (!std::exchange(sound, false)) return;
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
    sound = true;
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

}  // namespace

rpc::Task<SavedDatabase> save_shard(std::shared_ptr<ShardHost> host, std::uint64_t attempt,
                                    std::string folder, storage::ChosenEncoding encoding) {
  host->shard.begin_save(attempt);
  const DropMark drop{host->shard, attempt};
  if (const auto whole = host->shard.whole_in_delta(attempt); !whole.empty())
    log_info(host->database, ": a delta with all rows of ", whole,
             ", as their rules change every row, or nobody noted which did");
  const auto job = std::make_shared<SaveJob>();
  job->encoding = std::move(encoding);
  auto create = [job, &store = host->store, path = folder + "/" + host->database] {
    job->begin(store, path);
  };
  PagesAhead pages(*host, attempt);
  std::deque<kj::Promise<void>> writes;
  writes.push_back(rpc::on_offload(host->reactor, host->offload, host->lane, std::move(create)));
  // Batches are gathered while the disk's thread writes those before. After an error what is under
  // way is waited for: the caller may remove the folder then.
  std::exception_ptr error;
  for (bool more = true; more || !writes.empty();) {
    if (!more || writes.size() == kBatchesAhead) {
      try {
        co_await kj::mv(writes.front());
      } catch (...) {
        if (!error) error = std::current_exception();
      }
      writes.pop_front();
      more = more && !error;
      continue;
    }
    if (!host->shard.next_prepared(attempt)) {
      host->shard.prepare_next(attempt);
      co_await host->reactor.yield();
      continue;
    }
    std::shared_ptr<const Batch> batch;
    try {
      batch = std::make_shared<const Batch>(take_batch(*host, attempt));
    } catch (...) {
      error = std::current_exception();
    }
    more = batch != nullptr && !batch->empty();
    if (!more) continue;
    auto write = [job, batch] { job->write(*batch); };
    writes.push_back(rpc::on_offload(host->reactor, host->offload, host->lane, std::move(write)));
    pages.look();
    co_await host->reactor.yield();  // pulls and pushes that came meanwhile
  }
  if (error) std::rethrow_exception(error);
  auto finish = [job] { job->saved.files = job->writer->finish(); };
  co_await rpc::on_offload(host->reactor, host->offload, host->lane, std::move(finish));
  co_return std::move(job->saved);
}

}  // namespace cairn::ps
