// RowCache: embedding tables in the host's memory whose rows in use lie in a device's memory.
//
//   Steps work in the cache alone. Some steps ahead of its turn a batch is prepared: each row that
//   it looks up gets a place in the cache, and rows move in and out, beside the steps that run.
//
//     cache.prepare(lookups of batch t + lookahead, RowCache::Access::kChanges);
//     const std::int32_t* places = cache.use();  // of batch t
//     ... on the queue: gathers and updates of cache.block() with `places` as their ids ...
//     cache.release();
//
//   A row is in one place, which it keeps for as long as a batch that looks it up is prepared and
//   not released. So every step finds the rows as the steps before it have left them, and results
//   have the bits of steps on tables that lie in the device's memory.
//
//   Room     The batches that are prepared and not released need a place for each row that they
//            look up: lookups_max * (lookahead + 1) places always suffice. With fewer places a
//            batch may find no room for some rows. That is a fault (faults.h), raised when the
//            queue next waits, and what was computed since then is to be thrown away.
//   Victims  A row that comes in takes the place of one that was not looked up for long; of rows
//            that were looked up by several batches, later. Equal calls give equal places.
//   Host     Nothing here waits, but for construction, flush(), counts() and destruction. The
//            device copies rows itself: the host's memory must be pinned. While the cache lives,
//            it may be read after flush(), up to the next prepare(), and must not be written.
//   Memory   On the device: a row and 16 bytes per place, 4 bytes per row of the tables, about
//            80 + 4 * lookahead bytes per lookup of a batch, and about 50 bytes per candidate for a
//            victim: as many candidates as lookahead + 4 batches have lookups, or as places.
//   Bounds   2^31 batches, places, and lookups of a batch.
//   Thread   one at a time; that of the queue.
//   Source   Reading the host's memory from kernels in aligned runs of 128 bytes: Min et al.,
//            "EMOGI: Efficient Memory-access for Out-of-memory Graph-traversal in GPUs", PVLDB 14,
//            2020.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/update_rule.h"
#include "core/kernels/cuda/embedding/tables.h"
#include "core/kernels/cuda/runtime/queue.h"

namespace cairn::cuda {

struct RowCacheOptions {
  std::int64_t places = 0;       // rows that fit into the cache; below 2^31
  std::int64_t lookups_max = 0;  // of a batch; below 2^31
  int lookahead = 4;             // batches that may be prepared beyond the one in use
  // The one table's name, for errors. If it is given, an id out of range is a fault as well, and is
  // raised with the id.
  std::string table = {};
};

class RowCache {
 public:
  struct Counts {
    std::uint64_t found = 0;    // distinct rows of batches that were in the cache already
    std::uint64_t read = 0;     // rows that came in from the host
    std::uint64_t written = 0;  // rows that went back to it, but for those of flush()
  };
  // Whether the step of a batch may change the rows that the batch looks up, or only reads them.
  enum class Access : std::uint8_t { kReads, kChanges };

  // `home` holds the rows of all tables with their slots beside them, in pinned memory
  // (Driver::allocate_pinned()) that outlives the cache; row r of table t is home's row
  // first_row[t] + r, and first_row ends with home.rows. The queue outlives the cache.
  //   Errors  InvalidArgument: sizes that do not fit, or rows that are no multiple of 16 bytes.
  //           ResourceExhausted: not enough device memory.
  RowCache(Queue& queue, const RowBlock& home, const std::vector<std::int64_t>& first_row,
           const RowCacheOptions& options);
  ~RowCache();
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;

  // Enqueues, on stream(), whatever brings the next batch's rows into the cache. The lookups must
  // be ready in the order of that stream, and stay as they are until the batch's use(). An id that
  // is out of range gets the place -1.
  //   Errors  InvalidArgument: more lookups than fit.  FailedPrecondition: lookahead + 1 batches
  //           are prepared and not released.
  //   Cost    the rows that come in and go, at the bus's rate both ways at once; two sorts, of the
  //           lookups and of about as many places as the batches in flight have lookups.
  void prepare(const Lookups& lookups, Access access);
  Stream stream() const { return ahead_.stream(); }

  // Makes the queue wait until the rows of the next batch are there.
  //   Result  places of its lookups, [lookups_max], in device memory: row numbers of block(). They
  //           lie where those of the batch lookahead + 1 before did.
  //   Errors  FailedPrecondition: no batch is prepared, or one is in use.
  const std::int32_t* use();
  // Ends the use of a batch: all work that reads or changes its rows is on the queue by now.
  //   Errors  FailedPrecondition: none is in use.
  void release();

  // The cache's rows, and slots beside them, laid out as `home` is.
  RowBlock block() const;

  // Waits for all steps and brings the changed rows home. Rows stay in the cache.
  //   Errors  InvalidArgument: a kernel found a fault.
  void flush();
  // The counts of all batches given to prepare() so far; waits until the device has prepared them.
  Counts counts();
  // The counts as they were some batches ago; waits for nothing.
  Counts counts_lately() const;

 private:
  struct Parts;
  void announce(const Lookups& lookups, const std::int32_t* places);
  void look_at_sums();

  Queue& queue_;
  const RowBlock home_;
  const RowCacheOptions options_;
  Queue ahead_;  // of prepare(), beside the steps
  std::unique_ptr<Parts> parts_;
  std::shared_ptr<const FaultSite> no_room_, bad_id_;  // bad_id_ nullptr: no fault
  std::int32_t prepared_ = 0, released_ = 0;           // batches so far
  bool in_use_ = false;
};

}  // namespace cairn::cuda
