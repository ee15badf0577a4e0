#include "serving/model/stored_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "storage/row_block.h"

namespace cairn::serving {
namespace {

using storage::BlockPlace;
using Wait = BlockFiles::Wait;

// A block's layout in one word, so that threads need no lock to learn of it.
struct Known {
  static constexpr std::uint64_t kVerified = 1, kDamaged = 2;  // the latter: it was told of
  bool by_row = false;  // its rows are read one by one; otherwise the block is decoded as a whole
  bool contiguous = false;
  std::size_t kind = 0;     // of 16
  std::size_t rows_at = 0;  // from the beginning of the place
  std::size_t list_at = 0;
  std::size_t count = 0;

  // Whether the numbers fit into a word's fields.
  bool fits() const { return rows_at < 1 << 20 && list_at < 1 << 19 && count < 1 << 17; }
  std::uint64_t word() const {
    if (!by_row || !fits()) return kVerified;
    return kVerified | 4 | std::uint64_t{contiguous} << 3 | kind << 4 | rows_at << 8 |
           list_at << 28 | static_cast<std::uint64_t>(count) << 47;
  }
  static Known of(std::uint64_t word) {
    return {(word & 4) != 0,     (word & 8) != 0,      word >> 4 & 15,
            word >> 8 & 0xfffff, word >> 28 & 0x7ffff, word >> 47 & 0x1ffff};
  }
};

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the index of `offset` among the offsets, or offsets.size() if it is not there.
std::size_t place_in(const std::vector<std::uint64_t>& offsets, std::uint64_t offset) {
  const auto at = std::lower_bound(offsets.begin(), offsets.end(), offset);
  if (at == offsets.end() || *at != offset) return offsets.size();
  return static_cast<std::size_t>(at - offsets.begin());
}

// The last block that begins at or before the row, of which there is one. Blocks of a dense table,
// and of hashed ids, hold about equally many numbers, so that the search begins near its end.
std::size_t block_of(const std::vector<BlockPlace>& places, std::int64_t row) {
  const std::int64_t first = places.front().first_row;
  const double share =
      static_cast<double>(row - first) / (static_cast<double>(places.back().first_row - first) + 1);
  const auto last = places.size() - 1;
  const auto guess = std::min(last, static_cast<std::size_t>(share * static_cast<double>(last)));
  std::size_t low = guess, high = guess + 1, step = 1;
  for (; places[low].first_row > row; step *= 2) {
    high = low;
    low -= std::min(low, step);
  }
  for (step = 1; high <= last && places[high].first_row <= row; step *= 2) {
    low = high;
    high = std::min(last + 1, high + step);
  }
  const auto behind = std::upper_bound(
      places.begin() + static_cast<std::ptrdiff_t>(low),
      places.begin() + static_cast<std::ptrdiff_t>(high), row,
      [](std::int64_t wanted, const BlockPlace& each) { return wanted < each.first_row; });
  return static_cast<std::size_t>(behind - places.begin()) - 1;
}

}  // namespace

// One thread's look-ups of one read: what they decode serves those that follow in the same block.
class StoredRows::Lookup {
 public:
  explicit Lookup(const StoredRows& of) : of_(of) {}

  enum class Outcome : std::uint8_t { kFound, kAbsent, kLater };
  Outcome find(std::int64_t row, std::byte* out, Wait wait) {
    for (std::size_t database = of_.databases_.size(); database-- > 0;) {
      if (!of_.superseded_.counts(database, row)) continue;
      const auto& places = of_.databases_[database].places;
      if (places.empty() || row < places.front().first_row) continue;
      const At at{database, block_of(places, row)};
      if (const Outcome outcome = find_in(at, row, out, wait); outcome != Outcome::kAbsent)
        return outcome;
    }
    return Outcome::kAbsent;
  }

 private:
  struct At {
    std::size_t database = SIZE_MAX, block = 0;
    bool operator==(const At&) const = default;
  };
  const BlockPlace& place(At at) const { return of_.databases_[at.database].places[at.block]; }
  std::atomic<std::uint64_t>& word(At at) const {
    return of_.databases_[at.database].known[at.block];
  }

  Outcome find_in(At at, std::int64_t row, std::byte* out, Wait wait) {
    if (wait == Wait::kNo && at == later_) return Outcome::kLater;
    const auto offset = static_cast<std::uint64_t>(row - place(at).first_row);
    try {
      const Known known = Known::of(word(at).load(std::memory_order_acquire));
      const Outcome outcome = known.by_row && decoded_of_ != at
                                  ? read_row(at, known, offset, out, wait)
                                  : from_block(at, offset, out, wait);
      if (outcome == Outcome::kLater) later_ = at;
      return outcome;
    } catch (const DataLossError& error) {
      damaged(at, row, error);
    }
  }

  Outcome read_row(At at, const Known& known, std::uint64_t offset, std::byte* out, Wait wait) {
    std::size_t number = offset;
    const Kind& kind = of_.kinds_[known.kind];
    if (!known.contiguous) {
      if (!has_list(at, known, kind, wait)) return Outcome::kLater;
      number = place_in(list_, offset);
    }
    if (number >= known.count) return Outcome::kAbsent;
    const std::uint64_t from = place(at).begin + known.rows_at + number * kind.layout.stride;
    const bool exact = kind.layout.form.rows == storage::RowForm::kExact;
    row_.resize(kind.parameter_bytes);
    if (!of_.files_->read(place(at).file, from, kind.parameter_bytes, exact ? out : row_.data(),
                          wait))
      return Outcome::kLater;
    if (!exact) storage::decode_parameters(kind.layout, row_.data(), out);
    return Outcome::kFound;
  }

  bool has_list(At at, const Known& known, const Kind& kind, Wait wait) {
    if (list_of_ == at) return true;
    list_of_ = {};
    bytes_.resize(known.rows_at - known.list_at);
    if (!of_.files_->read(place(at).file, place(at).begin + known.list_at, bytes_.size(),
                          bytes_.data(), wait))
      return false;
    storage::RowLayout layout = kind.layout;
    layout.count = static_cast<std::uint32_t>(known.count);
    storage::read_row_list(layout, text_of(bytes_), list_);
    list_of_ = at;
    return true;
  }

  Outcome from_block(At at, std::uint64_t offset, std::byte* out, Wait wait) {
    if (decoded_of_ != at && !decode(at, wait)) return Outcome::kLater;
    const std::size_t number = place_in(decoded_.offsets, offset);
    if (number == decoded_.offsets.size()) return Outcome::kAbsent;
    std::memcpy(out, decoded_.data.data() + number * decoded_.row_bytes(), of_.row_bytes_);
    return Outcome::kFound;
  }

  bool decode(At at, Wait wait) {
    decoded_of_ = {};
    const BlockPlace& from = place(at);
    bytes_.resize(from.bytes);
    if (!of_.files_->read(from.file, from.begin, from.bytes, bytes_.data(), wait)) return false;
    const VariableSpec& spec = *of_.spec_;
    const std::string key =
        encode(storage::RecordKey{spec.name, storage::RecordKind::kRows, from.first_row});
    const auto found = storage::find_record(text_of(bytes_), key);
    const std::string_view value = text_of(bytes_).substr(found.at, found.bytes);
    storage::decode_rows(key, value, decoded_);
    if (decoded_.dtype != spec.dtype || decoded_.dim != spec.dim())
      throw DataLossError(str("it holds rows of ", decoded_.dim, ' ', dtype_name(decoded_.dtype),
                              ", and those of the variable have ", spec.dim(), ' ',
                              dtype_name(spec.dtype), ": save the model again"));
    learn(at, storage::row_layout(value), found.at);
    decoded_of_ = at;
    return true;
  }

  void learn(At at, const storage::RowLayout& layout, std::size_t value_at) {
    const std::size_t kind = layout.compressed() ? kKindsMax : of_.kind_of(layout);
    const Known known{kind < kKindsMax,          layout.contiguous,         kind,
                      value_at + layout.rows_at, value_at + layout.list_at, layout.count};
    word(at).store(known.word(), std::memory_order_release);
  }

  // Each block is told of in the log once.
  [[noreturn]] void damaged(At at, std::int64_t row, const DataLossError& error) {
    const std::string text =
        str(of_.files_->path(place(at).file), ", at byte ", place(at).begin, ", row ", row,
            " of variable \"", of_.spec_->name, "\": ", error.what());
    if ((word(at).fetch_or(Known::kDamaged) & Known::kDamaged) == 0) {
      add(of_.counters_->damaged_blocks, 1);
      log_warning(text);
    }
    throw DataLossError(text);
  }

  const StoredRows& of_;
  At later_, list_of_, decoded_of_;
  std::vector<std::byte> bytes_, row_;
  std::vector<std::uint64_t> list_;
  storage::StoredRows decoded_;
};

StoredRows::StoredRows(std::shared_ptr<const VariableSpec> spec, std::uint64_t seed,
                       StoredPlaces places, std::uint32_t table, std::shared_ptr<RowCache> cache,
                       std::shared_ptr<ReadCounters> counters)
    : spec_(std::move(spec)),
      seed_(seed),
      files_(std::move(places.files)),
      superseded_(std::move(places.superseded)),
      row_bytes_(static_cast<std::size_t>(spec_->dim()) * dtype_bytes(spec_->dtype)),
      table_(table),
      cache_(std::move(cache)),
      counters_(std::move(counters)) {
  for (auto& each : places.databases) {
    auto known = std::make_unique<std::atomic<std::uint64_t>[]>(each.size());
    databases_.push_back({std::move(each), std::move(known)});
  }
}
StoredRows::~StoredRows() = default;

std::size_t StoredRows::kind_of(const storage::RowLayout& layout) const {
  const std::lock_guard hold(adding_);
  for (std::size_t i = 0; i < kinds_count_; ++i)
    if (kinds_[i].layout.form == layout.form && kinds_[i].layout.stride == layout.stride) return i;
  if (kinds_count_ == kKindsMax) return kKindsMax;
  kinds_[kinds_count_] = {layout, layout.parameter_bytes()};
  return kinds_count_++;
}

void StoredRows::read(std::span<const std::int64_t> rows, std::byte* out,
                      std::vector<std::int64_t>& missed) const {
  missed.clear();
  const std::size_t initial = cache_->read(table_, rows, out, missed);
  if (spec_->hashed) add(counters_->unknown_ids, initial);
  add(counters_->cache_hits, rows.size() - missed.size());
  add(counters_->cache_misses, missed.size());
  if (!missed.empty()) read_from_disk(rows, out, missed);
}

// In the order of the rows, so that those of a block follow one another. What the kernel has at
// hand is read at first, while the disk reads the rest.
void StoredRows::read_from_disk(std::span<const std::int64_t> rows, std::byte* out,
                                std::vector<std::int64_t>& missed) const {
  std::ranges::sort(missed, {},
                    [&](std::int64_t at) { return rows[static_cast<std::size_t>(at)]; });
  Lookup lookup(*this);
  std::size_t left = missed.size();
  for (const Wait wait : {Wait::kNo, Wait::kYes}) {
    const std::size_t count = std::exchange(left, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(missed[i]);
      std::byte* const to = out + at * row_bytes_;
      auto kind = RowCache::Kind::kOwn;
      switch (lookup.find(rows[at], to, wait)) {
        case Lookup::Outcome::kLater: missed[left++] = missed[i]; continue;
        case Lookup::Outcome::kFound: break;
        case Lookup::Outcome::kAbsent:
          initialize_rows(*spec_, seed_, rows[at], 1, spec_->dim(), to);
          kind = RowCache::Kind::kInitial;
          if (spec_->hashed) add(counters_->unknown_ids, 1);
      }
      cache_->put(table_, rows[at], kind, to);
    }
  }
}

Tensor StoredRows::whole() const {
  CAIRN_CHECK(!spec_->hashed, "a hashed variable is read as a whole: ", spec_->name);
  Tensor value(spec_->dtype, spec_->shape);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(spec_->rows())), missed;
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  read(rows, value.mutable_raw(), missed);
  return value;
}

std::size_t StoredRows::bytes() const {
  std::size_t bytes = superseded_.bytes();
  for (const Blocks& each : databases_)
    bytes += each.places.size() * (sizeof(BlockPlace) + sizeof(std::uint64_t));
  return bytes;
}

}  // namespace cairn::serving
