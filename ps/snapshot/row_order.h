// RowOrder: the places of a hashed table's rows in the order of their numbers, for a checkpoint,
// whose keys ascend. The table goes on growing meanwhile; rows that come later are not in it.
//
//   Numbers are spread evenly up to their greatest, as hashes are: a counting sort by the highest
//   bits puts the places into buckets of some thousand, in two passes that can be cut into slices,
//   and a bucket is sorted when its first place is asked for. Uneven numbers make for large
//   buckets: right, and slower.
//   Source  counting sort: Cormen, Leiserson, Rivest, Stein, "Introduction to Algorithms", 8.2.
//   Memory  4 bytes a row until clear().
//   Thread  one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace cairn::ps {

class RowOrder {
 public:
  // Orders the first `count` places, whose rows are in [0, greatest]; if there is `only`, which
  // outlives the order, of those alone whose bits are set in it. At most 2^32 - 1 places.
  void begin(std::int64_t count, std::int64_t greatest,
             const std::vector<std::uint64_t>* only = nullptr);
  // How many places there are, once it is prepared.
  std::int64_t size() const { return size_; }
  bool prepared() const { return stage_ == Stage::kPrepared; }
  // Goes on with at most `places` places of one pass. `rows` has the row of each place, here and
  // below: it is asked for again because it moves as the table grows.
  void prepare(std::span<const std::int64_t> rows, std::int64_t places);
  // The places that come `begin`th to before `end`th. What is asked for ascends. What is not
  // prepared yet is prepared first.
  std::span<const std::uint32_t> sorted(std::span<const std::int64_t> rows, std::int64_t begin,
                                        std::int64_t end);
  void clear();

 private:
  enum class Stage : std::uint8_t { kCount, kPlace, kPrepared };
  std::size_t bucket_of(std::int64_t row) const { return static_cast<std::size_t>(row >> shift_); }
  void sort_next_bucket(std::span<const std::int64_t> rows);

  Stage stage_ = Stage::kPrepared;
  std::int64_t count_ = 0, size_ = 0;
  const std::vector<std::uint64_t>* only_ = nullptr;
  std::int64_t at_ = 0;  // places of the pass so far
  int shift_ = 0;
  // By bucket: how many places it has, then where its next one goes, and in the end its end.
  std::vector<std::uint32_t> ends_;
  std::unique_ptr<std::uint32_t[]> places_;
  std::size_t sorted_buckets_ = 0;
  std::int64_t sorted_places_ = 0;
  std::vector<std::pair<std::int64_t, std::uint32_t>> bucket_;  // rows with their places
};

}  // namespace cairn::ps
