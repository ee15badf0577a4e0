// ColdIndex: where the rows of a table lie that are on a disk: from the hash of an id to a place,
// in seven bytes. The ids themselves lie on the disk with the rows, so that an answer is a place to
// look at, and the one who looks compares.
//
//   By the hash's highest 8 bits to one of 256 tables, each an ordered linear probing: entries
//   ascend by the 25 bits that follow. Then a table of 92 % is still fast to search, and it grows
//   by a thirty-second, in place, without the rest of the hashes, which nobody has.
//   Source  Amble, Knuth, "Ordered hash tables", The Computer Journal 17(2), 1974.
//   Memory  7.6 to 7.9 bytes a row from some ten thousand rows on; 4 KB for each table below that.
//   Answers  A row that is not there has a place to look at with a probability of rows / 2^33.
//   Thread  one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cairn {

class ColdIndex {
 public:
  using Place = std::uint32_t;
  static constexpr Place kPlacesMax = (Place{1} << 31) - 1;  // places are below it

  ColdIndex() = default;
  ~ColdIndex() { clear(); }
  ColdIndex(const ColdIndex&) = delete;
  ColdIndex& operator=(const ColdIndex&) = delete;

  std::uint64_t size() const { return size_; }
  std::size_t bytes() const;

  // Calls `look(place)` for each place where the row of this hash may be. `hash` is well mixed,
  // here and below.
  template <typename Look>
  void find(std::uint64_t hash, Look look) const;
  void prefetch(std::uint64_t hash) const;
  // A place more for this hash.
  //   Errors  ResourceExhausted: not enough memory, or a place of kPlacesMax or more; nothing has
  //           changed.
  void add(std::uint64_t hash, Place place);
  // False: that place was not there.
  bool remove(std::uint64_t hash, Place place);
  bool move(std::uint64_t hash, Place from, Place to);
  void clear();

 private:
  static constexpr unsigned kTableBits = 8, kFragmentBits = 25, kPlaceBits = 31;
  static constexpr std::size_t kCellBytes = 7;

  // 0 is a free cell: places are stored as one more.
  struct Cell {
    std::uint64_t bits = 0;
    bool free() const { return bits == 0; }
    std::uint64_t fragment() const { return bits >> kPlaceBits; }
    Place place() const {
      return static_cast<Place>(bits & ((std::uint64_t{1} << kPlaceBits) - 1)) - 1;
    }
  };
  // No cell is free between an entry and its home, and entries ascend, so that those that are
  // sought lie side by side at or behind their home. Cells from `capacity` on are nobody's home.
  struct Table {
    std::byte* cells = nullptr;
    std::size_t mapped = 0;  // bytes
    std::uint64_t capacity = 0, slack = 0, used = 0;

    std::uint64_t end() const { return capacity + slack; }
    std::uint64_t home(std::uint64_t fragment) const {
      return fragment * capacity >> kFragmentBits;
    }
    Cell at(std::uint64_t cell) const {
      Cell found;
      std::memcpy(&found.bits, cells + cell * kCellBytes, sizeof found.bits);
      found.bits &= (std::uint64_t{1} << (8 * kCellBytes)) - 1;
      return found;
    }
    void set(std::uint64_t cell, Cell to) {
      std::memcpy(cells + cell * kCellBytes, &to, kCellBytes);
    }
    std::uint64_t first(std::uint64_t fragment) const;
    void map(std::uint64_t wanted_capacity, std::uint64_t wanted_slack);
    void spread(std::uint64_t old_end);
  };

  static std::size_t table_of(std::uint64_t hash) {
    return static_cast<std::size_t>(hash >> (64 - kTableBits));
  }
  static std::uint64_t fragment_of(std::uint64_t hash) {
    return hash << kTableBits >> (64 - kFragmentBits);
  }
  std::uint64_t cell_of(const Table& table, std::uint64_t hash, Place place) const;

  std::array<Table, std::size_t{1} << kTableBits> tables_;
  std::uint64_t size_ = 0;
};

inline std::uint64_t ColdIndex::Table::first(std::uint64_t fragment) const {
  std::uint64_t cell = home(fragment);
  while (cell < end() && !at(cell).free() && at(cell).fragment() < fragment) ++cell;
  return cell;
}

template <typename Look>
void ColdIndex::find(std::uint64_t hash, Look look) const {
  const Table& table = tables_[table_of(hash)];
  if (table.used == 0) return;
  const std::uint64_t fragment = fragment_of(hash);
  for (std::uint64_t cell = table.first(fragment); cell < table.end(); ++cell) {
    const Cell found = table.at(cell);
    if (found.free() || found.fragment() != fragment) return;
    look(found.place());
  }
}

inline void ColdIndex::prefetch(std::uint64_t hash) const {
  const Table& table = tables_[table_of(hash)];
  if (table.used > 0) __builtin_prefetch(table.cells + table.home(fragment_of(hash)) * kCellBytes);
}

}  // namespace cairn
