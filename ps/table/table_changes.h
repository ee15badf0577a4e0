// TableChanges: what one subscriber has still to be sent of one table. A bit for each place says
// that its row has changed; rows that have left their places while it mattered are kept by number,
// and what became of them is looked up when they are to be sent.
//
//   Newest   Values are read when they are sent. A row that changes often between two answers is
//            sent once.
//   Order    No answer holds a row as it was before an answer that went earlier: a row that is read
//            from a disk is sent only if it did not change, nor move, while it was read.
//   Lost     The numbers of the rows in the last answer are kept until the next one is asked for,
//            so that they can be sent again.
//   Begins   Before the first take(), and after begin_anew(), nothing is noted, and no memory is
//            taken: the next take() begins with all rows that were ever touched.
//   Memory   a quarter of a byte for each place, and 8 bytes for each row that has left, of at most
//            kAwayMax; beyond that the table begins anew.
//   Thread   the shard's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/rows/layout.h"
#include "core/rows/variable_store.h"
#include "ps/snapshot/touched_rows.h"
#include "storage/row_log/cold_store.h"

namespace cairn::ps {

class Table;

// An answer to a subscriber: rows of tables as they are now.
struct ChangedRows {
  struct OfTable {
    VariableId variable = 0;
    std::uint32_t part = 0;
    std::uint32_t rows = 0, gone = 0;  // how many of `rows` and `gone` are its own
    bool begins = false, complete = false;
  };
  std::vector<OfTable> tables;
  std::vector<std::int64_t> rows, gone;  // local numbers
  std::vector<std::byte> values;         // of `rows`, packed
  std::size_t bytes() const {
    return values.size() + (rows.size() + gone.size()) * sizeof(std::int64_t);
  }
};

class TableChanges {
 public:
  static constexpr std::size_t kAwayMax = std::size_t{1} << 20;

  // ---- told by the table ----
  // The rows at these places have changed; the table has `held` places.
  void changed(std::span<const std::int64_t> places, std::int64_t held) {
    if (!begun_) return;
    if (held > held_) grow(held);
    changed_.add(places);
  }
  void all_changed(std::int64_t held);
  // The row at this place leaves it: for a disk, or for good.
  enum class To : std::uint8_t { kNowhere, kDisk };
  void leaves(std::int64_t place, std::int64_t row, To to);
  // Rows that were on the disk have gone for good.
  void gone(std::span<const std::int64_t> rows);
  // The row at one place lies at another one now.
  void moved(std::int64_t from, std::int64_t to);
  // All rows are at their initial values, or not all that left is known any more.
  void begin_anew();

  // ---- asked by the subscription ----
  struct Asked {
    std::size_t bytes_max = 0;  // one row is given in any case
    bool coming = false;        // rows of the table are still to be restored
    // Every change that is older than this has been given, or has left its place.
    TimePoint covered;
  };
  // Adds rows to `out` and, if there is something to tell, the table's header. False: the bytes did
  // not suffice to look at all places up to the last one. The next take() goes on where it stopped,
  // or from the first place on.
  //   Errors  DataLoss: the disk's rows cannot be read; the table begins anew.
  bool take(Table& table, const Asked& asked, ChangedRows::OfTable header, ChangedRows& out);
  // The rows that were taken last have arrived, or were lost: then they are taken again, as they
  // are by then. `covered`: Asked::covered of that take().
  void arrived();
  void lost(TimePoint covered);

  // All places were looked at: the next take() begins with the first one.
  bool at_first_place() const { return hand_ == 0; }
  void to_first_place() { hand_ = 0; }
  // Rows are being read, or wait to be looked for: ask again.
  bool waits() const { return !away_.empty() || !old_.empty() || looking() || cut_ != nullptr; }
  // Changes that are older have been given, though not all newer ones.
  TimePoint covered(TimePoint by_places) const;
  std::size_t bytes() const;

 private:
  // Rows that are looked for on the disk, ascending.
  enum class Found : std::uint8_t { kNothing, kRow, kOutdated };
  struct Looked {
    std::vector<std::int64_t> rows;
    std::vector<Found> found;
    std::vector<std::byte> values;  // packed, of each
    bool ready = false;
  };

  bool looking() const { return !looked_.rows.empty(); }
  void grow(std::int64_t held);
  void note_away(std::int64_t row);
  void start(Table& table);
  void read_cut(const Table& table);
  void take_looked(Table& table, std::size_t row_bytes, std::size_t bytes_max, ChangedRows& out);
  void take_away(Table& table, std::size_t gone_max, ChangedRows& out);
  void look_for(Table& table, std::vector<std::int64_t> rows);
  bool take_places(Table& table, std::size_t most, ChangedRows& out);
  void follow_beginning(bool coming);

  bool begun_ = false;
  TouchedRows changed_;
  std::int64_t held_ = 0, hand_ = 0;
  // Rows that left since the last batch of them was begun, and that batch, whose last are next; and
  // until when every change had been given before the first of each left.
  std::vector<std::int64_t> away_, old_;
  TimePoint away_since_, old_since_;
  Looked looked_;
  // Rows that are on the disk when the table begins.
  std::unique_ptr<storage::ColdCut> cut_;
  std::uint64_t cut_left_ = 0;
  bool reading_cut_ = false;
  std::exception_ptr error_;
  // How far a beginning is: batches of rows that had left are to be done, then passes over places.
  struct Beginning {
    bool told = true, complete = true, complete_told = true;
    int batches = 0, passes = -1;  // -1: not counted yet
    void again() {
      batches = 0;
      passes = -1;
    }
  };
  Beginning beginning_;
  struct Sent {
    std::vector<std::int64_t> rows, gone;
    bool begins = false, complete = false;
  };
  Sent sent_;
  // Reads may end after this object has, or after it has begun anew.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace cairn::ps
