// IdIndex: numbers ids in the order in which they come, so that a table of 2^40 rows holds only
// those in use. The place of one that was erased goes to the next that comes.
//
//   A flat hash table: open addressing with linear probing (Knuth, "Sorting and Searching", 6.4),
//   entries of 32 bits: the place, and in the bits that places do not need some of the hash, so
//   that a miss rarely looks at an id.
//   Memory  13 to 21 bytes an id: 8 for the id itself, 5 to 7.5 for entries that are at most 4/5
//           full, and while it grows the entries before them.
//   Growth  by half. Ids move over a few at a time, with those that are added, so that no call pays
//           for all.
//   Thread  one at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/arena.h"

namespace cairn {

class IdIndex {
 public:
  static constexpr std::int64_t kAbsent = -1;
  static constexpr std::int64_t kIdsMax = (std::int64_t{1} << 32) - 2;
  static constexpr std::size_t kBytesAnId = 21;  // at most, from some hundred ids on

  // Places so far, 0 .. size() - 1, and how many of them have an id.
  std::int64_t size() const { return size_; }
  std::int64_t used() const { return used_; }
  // by place; kFree where there is none
  static constexpr std::int64_t kFree = INT64_MIN;
  std::span<const std::int64_t> ids() const { return {id_at(0), static_cast<std::size_t>(size_)}; }
  std::size_t bytes() const;

  // Writes the place of each id to `places`, kAbsent where it has none.
  void find(std::span<const std::int64_t> ids, std::int64_t* places) const;
  // The same; an id without a place gets the one that was erased last, or the next one.
  // Errors  ResourceExhausted: not enough memory, or kIdsMax ids; those before the one that did not
  //         fit stay.
  void find_or_add(std::span<const std::int64_t> ids, std::int64_t* places);
  // The id of this place goes, which must have one.
  void erase(std::int64_t place);
  // The last place goes; there is one without an id. The id of the last one, if it has one, moves
  // to another, which is returned, otherwise kAbsent.
  std::int64_t drop_last();
  // Makes room for that many ids in all, so that adding them does not grow the index on the way.
  // Errors  ResourceExhausted: not enough memory; nothing has changed.
  void reserve(std::int64_t ids);
  void clear() { *this = IdIndex(); }

 private:
  // The table itself: a capacity that need not be a power of two, and what follows from it.
  struct Entries {
    Arena memory;
    std::uint64_t capacity = 0;
    std::int64_t places_max = 0;  // ids that fit: 4/5 of the capacity
    unsigned place_bits = 0;

    Entries() = default;
    explicit Entries(std::uint64_t wanted);
    std::uint32_t* data() const { return reinterpret_cast<std::uint32_t*>(memory.data()); }
    std::uint64_t home(std::uint64_t hash) const;
    std::uint64_t next(std::uint64_t at) const { return at + 1 == capacity ? 0 : at + 1; }
    std::uint64_t tag(std::uint64_t hash) const;
    std::int64_t place(std::uint32_t entry) const;
    // The first place with that much of the hash that `accept(place)` takes.
    template <typename Accept>
    std::int64_t find(std::uint64_t hash, Accept accept) const;
    void prefetch(std::uint64_t hash) const;
    void add(std::uint64_t hash, std::int64_t place);
    // Takes the entry of this place out; `hash_of_place(place)` is that of another one's id.
    template <typename HashOf>
    void erase(std::uint64_t hash, std::int64_t place, HashOf hash_of_place);
  };

  const std::int64_t* id_at(std::int64_t place) const {
    return reinterpret_cast<const std::int64_t*>(ids_.data()) + place;
  }
  std::int64_t* id_to_change(std::int64_t place) {
    return reinterpret_cast<std::int64_t*>(ids_.data()) + place;
  }
  std::int64_t take_free();  // there is one
  void take_out(std::int64_t place);
  std::int64_t find(std::int64_t id, std::uint64_t hash) const;
  std::int64_t add(std::int64_t id, std::uint64_t hash);
  // make_room() begins to grow when the entries are full; after that move_some() brings over a few
  // ids of the smaller table at a time.
  void make_room();
  void grow_to(std::uint64_t capacity);
  void move_some();
  bool growing() const { return moved_ < to_move_; }
  // The one of the two that has the entry of this place, or is to have it.
  Entries& entries_of(std::int64_t place) {
    return place >= moved_ && place < to_move_ ? before_ : entries_;
  }
  // `take(i, id, hash, candidate)` for each id, after the memory that its look-up needs was asked
  // for: the place at `candidate` may be that of another id; kAbsent: it had none.
  template <typename Take>
  void ahead(std::span<const std::int64_t> ids, Take take) const;

  std::int64_t size_ = 0;
  Arena ids_;
  std::int64_t used_ = 0;
  // Places that were erased, and some that are in use again or gone: an entry is looked at before
  // it is used.
  std::vector<std::uint32_t> free_;
  Entries entries_;
  // while growing: the places from `moved_` to `to_move_` are only here
  Entries before_;
  std::int64_t moved_ = 0, to_move_ = 0;
};

}  // namespace cairn
