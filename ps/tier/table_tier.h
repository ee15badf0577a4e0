// TableTier: which rows of a hashed table are in memory and which are in a store on a disk, and how
// they come and go.
//
//   A row that was asked for is in memory; when memory is short, those that are asked for least
//   leave (TinyLfu). One that has changed since it was last written is appended to the store, one
//   that has not just goes. A row that comes back keeps its record there until it changes.
//
//     in memory   clean: as its record says, or, without one, at its initial value
//                 dirty: it has no record
//     elsewhere   has a record, found by ColdIndex
//     neither     was never updated: at its initial value
//
//   So the rows of a table are its dirty ones and those that have a record, and no row is both.
//   With a RowPolicy rows that are elsewhere go for good, too (RowTurnover): some are read at a
//   time, and a record says when its row was last updated.
//   Moments  Requests are numbered. A row that one has used or fetched does not leave before that
//            request, and those before it, had their turn: see choose().
//   Memory   26 bytes a row in memory, 8 to 16 for the sketch, 8 a row elsewhere.
//   Thread   the shard's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/random.h"
#include "core/rows/cold_index.h"
#include "core/rows/row_memory.h"
#include "core/rows/row_turnover.h"
#include "core/rows/tiny_lfu.h"
#include "ps/tier/memory_budget.h"
#include "storage/row_log/cold_store.h"

namespace cairn::ps {

struct TierCounters {
  std::uint64_t fetched = 0;  // rows that were read from the store
  std::uint64_t evicted = 0;  // rows that left memory
  std::uint64_t written = 0;  // of these, appended to the store
};

class TableTier {
 public:
  using Moment = std::uint32_t;  // of a count that goes round
  // All tables of a shard have these in common.
  struct Shared {
    MemoryBudget* budget = nullptr;
    storage::MakeColdStore make_store;
    TierCounters* counters = nullptr;
    std::int64_t rows_min = 64;          // that a table has room for in any case
    const std::uint32_t* now = nullptr;  // a Moment
  };
  // `memory` holds the table's rows, and outlives it, as does what is shared; `turnover` says which
  // rows go for good, and is null if none do.
  TableTier(RowMemory& memory, const Shared& shared, std::string name, RowTurnover* turnover);
  ~TableTier();
  TableTier(const TableTier&) = delete;
  TableTier& operator=(const TableTier&) = delete;

  // ---- which rows are where ----
  // No row is in the store, and none is about to leave.
  bool all_here() const { return lfu_ == nullptr; }
  // Adds those of the rows to `elsewhere` that may be in the store; the others are used now. It is
  // known of those that were fetched, and were not there, until the request had its turn.
  // `counts`: as a use of its own, and not as the second half of one, as a push is after its pull.
  void find_elsewhere(std::span<const std::int64_t> rows, bool counts,
                      std::vector<std::int64_t>& elsewhere);
  // A look that counts as no use: the row may have a record. In memory it may be, too.
  bool may_be_elsewhere(std::int64_t row) const;
  std::uint64_t records() const { return index_.size(); }  // rows that have one
  std::uint64_t rows_elsewhere() const { return index_.size() - clean_; }
  // Rows have other slots from now on, and none has a record.
  void laid_anew() { store_.reset(); }

  // ---- rows come ----
  // Rows that were looked for in the store: those that were there, each as RowMemory::save() lays
  // it, and those that were not, which are at their initial values, if they are not in memory.
  struct Fetched {
    std::vector<std::int64_t> rows, initial;  // ascending
    std::vector<storage::Place> records;      // of `rows`
    std::vector<std::uint32_t> updated;       // of `rows`, if some go for good
    std::vector<std::byte> saved;
    std::exception_ptr error;
  };
  // Reads these rows, ascending and distinct. `done` is called once, later.
  void fetch(const std::vector<std::int64_t>& rows, std::function<void(Fetched)> done);
  // They are in memory now, and clean.
  void came(const Fetched& fetched);
  // Requests that were before this moment have had their turns.
  void forget_looks(Moment before);

  // ---- rows change ----
  // The rows at these places are about to change, and their records go.
  void change(std::span<const std::int64_t> places);

  // ---- rows leave ----
  // Up to `most` rows that are to leave, if memory is short: none that was used at `before` or
  // later. They are dirty, or clean. What follows must be leave() or stay().
  struct Leaving {
    std::vector<std::int64_t> places, dirty;
    bool empty() const { return places.empty(); }
  };
  Leaving choose(std::size_t most, Moment before);
  // Appends the dirty ones to the store and lets go of all.
  //   Errors  the store's: then they stay.
  void leave(const Leaving& rows);
  void stay(const Leaving& rows);
  // The last places of the memory go, up to `most`, if it has more than the table may have and
  // enough of them have no row; `moved` is called of each row that lay there, and lies elsewhere
  // now. False: no place went.
  using PlaceMoved = std::function<void(std::int64_t from, std::int64_t to)>;
  bool compact(std::int64_t most, const PlaceMoved& moved);
  // How many rows have to leave so that the table is within its budget. It begins to keep book of
  // uses when that comes near.
  std::size_t surplus();

  // ---- rows go for good ----
  // The rows at these places are about to; so do their records.
  void drop(std::span<const std::int64_t> places);
  // If it is time to, looks at some rows that are elsewhere. `gone` is called once, later, if some
  // of them have gone.
  using Gone = std::function<void(std::span<const std::int64_t> rows)>;
  void sweep(Gone gone);

  // Rows that the store takes now.
  std::size_t store_room() const { return store_ == nullptr ? SIZE_MAX : store_->room(); }

  // ---- a checkpoint ----
  // Which places have a dirty row, or any that was ever updated, a bit a place.
  std::vector<std::uint64_t> dirty_places() const;
  std::vector<std::uint64_t> updated_places() const;
  // All rows of the store; or those of these, ascending, that are there. Null: there are none. They
  // are as RowMemory::save() lays them.
  std::unique_ptr<storage::ColdCut> freeze();
  std::unique_ptr<storage::ColdCut> freeze(std::vector<std::int64_t> rows);

  // Every row is at its initial value.
  void reset();
  // So many bytes of memory are taken for the table by others.
  void set_beside(std::size_t bytes) { beside_ = bytes; }
  std::size_t bytes() const;  // of the table, in memory
  storage::ColdUse store_use() const {
    return store_ == nullptr ? storage::ColdUse{} : store_->use();
  }

 private:
  static constexpr storage::Place kNone = storage::kNoPlace;
  static std::uint64_t hash_of_row(std::int64_t row) {
    return mix_bits(static_cast<std::uint64_t>(row));
  }
  static bool earlier(Moment one, Moment other) {
    return static_cast<std::int32_t>(one - other) < 0;
  }
  std::uint64_t hash_at(std::int64_t place) const;
  void look_for(std::span<const std::int64_t> rows, std::span<const std::size_t> absent,
                std::vector<std::int64_t>& elsewhere) const;
  void fit();
  void append(const std::vector<std::int64_t>& places);
  void enter(std::int64_t place);
  void track();
  void moved(std::span<const storage::Move> moves);
  // Where the record lies that lay at `place` when it was asked for; kNone: it has gone.
  storage::Place where_now(std::uint64_t hash, storage::Place place) const;
  bool saves_age() const { return turnover_ != nullptr && memory_.spec().policy.evicts(); }
  std::size_t record_bytes() const {
    return memory_.layout().saved_row_bytes() + (saves_age() ? sizeof(std::uint32_t) : 0);
  }
  std::uint32_t age_in(const std::byte* record) const;
  void swept(const std::vector<storage::Place>& places, const storage::ReadRows& read,
             const Gone& gone);
  bool dirty(std::int64_t place) const {
    return (dirty_[static_cast<std::size_t>(place) >> 6] >> (place & 63) & 1) != 0;
  }
  void set_dirty(std::int64_t place, bool is);
  void tell_bytes() { shared_.budget->set_taken(share_, bytes()); }

  RowMemory& memory_;
  Shared shared_;
  std::string name_;
  RowTurnover* turnover_;
  std::size_t share_, beside_ = 0;
  std::unique_ptr<storage::ColdStore> store_;
  ColdIndex index_;
  std::uint64_t clean_ = 0;  // rows in memory that have a record
  // By place.
  std::vector<std::uint64_t> dirty_;
  std::vector<storage::Place> records_;
  std::vector<Moment> used_;
  bool shrinking_ = false;
  std::unique_ptr<TinyLfu> lfu_;  // once memory is short
  std::int64_t places_max_ = 0;   // that the budget has allowed so far
  // Records that were moved while rows are being fetched or looked at.
  std::size_t fetching_ = 0;
  std::unordered_map<storage::Place, storage::Place> moves_;
  // Rows that may be in the store, by their hashes, and were found not to be, and when.
  std::unordered_map<std::int64_t, Moment> not_there_;
  // Where to look next for rows that may go for good.
  struct Sweep {
    storage::Place next = 0;
    bool under_way = false, failed = false;
  };
  Sweep sweep_;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace cairn::ps
