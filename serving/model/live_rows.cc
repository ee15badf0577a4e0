#include "serving/model/live_rows.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/rows/gather.h"

namespace cairn::serving {
namespace {

constexpr std::size_t kChunk = 256;        // rows that change under one lock
constexpr std::int64_t kChunkRows = 4096;  // that are looked at under one
constexpr std::size_t kRoomMin = 1024;     // rows of a hashed table to begin with
constexpr std::size_t kBitsAWord = 64;

}  // namespace

LiveRows::LiveRows(VariableSpec spec, std::uint64_t seed, std::shared_ptr<ReadCounters> counters)
    : spec_(std::move(spec)),
      row_bytes_(static_cast<std::size_t>(spec_.dim()) * dtype_bytes(spec_.dtype)),
      counters_(std::move(counters)),
      seed_(seed),
      rows_(row_bytes_ * (spec_.hashed ? kRoomMin : to_size(spec_.rows()))) {
  if (!spec_.hashed) initialize_rows(spec_, seed_, 0, spec_.rows(), spec_.dim(), rows_.data());
}

// ---- readers ----

void LiveRows::read(std::span<const std::int64_t> rows, std::byte* out,
                    std::vector<std::int64_t>& scratch) const {
  const std::shared_lock hold(mutex_);
  if (!spec_.hashed) return gather_rows(rows_.data(), row_bytes_, row_bytes_, rows, out);
  scratch.resize(rows.size());
  index_.find(rows, scratch.data());
  std::uint64_t unknown = 0;
  for (std::size_t i = 0; i < rows.size(); ++i, out += row_bytes_) {
    if (scratch[i] == IdIndex::kAbsent) {
      initialize_rows(spec_, seed_, rows[i], 1, spec_.dim(), out);
      ++unknown;
    } else {
      std::memcpy(out, rows_.data() + row_bytes_ * to_size(scratch[i]), row_bytes_);
    }
  }
  add(counters_->unknown_ids, unknown);
}

Tensor LiveRows::whole() const {
  CAIRN_CHECK(!spec_.hashed, "a hashed variable is read as a whole: ", spec_.name);
  {
    const std::shared_lock hold(mutex_);
    if (whole_ != nullptr) return *whole_;
  }
  const std::unique_lock hold(mutex_);
  if (whole_ == nullptr) {
    Tensor copy(spec_.dtype, spec_.shape);
    std::memcpy(copy.mutable_raw(), rows_.data(), copy.bytes());
    whole_ = std::make_shared<const Tensor>(std::move(copy));
  }
  return *whole_;
}

std::size_t LiveRows::bytes() const {
  const std::shared_lock hold(mutex_);
  const auto rows = spec_.hashed ? index_.size() : spec_.rows();
  return row_bytes_ * to_size(rows) + index_.bytes();
}

// ---- the writer ----

bool LiveRows::is_old(std::int64_t place) const {
  const std::size_t word = to_size(place) / kBitsAWord;
  return word < old_.size() && (old_[word] >> (to_size(place) % kBitsAWord) & 1) != 0;
}

void LiveRows::set_old(std::int64_t place, bool old) {
  const std::size_t word = to_size(place) / kBitsAWord;
  const std::uint64_t bit = std::uint64_t{1} << (to_size(place) % kBitsAWord);
  if (word >= old_.size()) {
    if (!old) return;
    old_.resize(word + 1);
  }
  old_[word] = old ? old_[word] | bit : old_[word] & ~bit;
}

void LiveRows::put(std::span<const std::int64_t> rows, const std::byte* values) {
  std::vector<std::int64_t> places(std::min(rows.size(), kChunk));
  for (std::size_t begin = 0; begin < rows.size(); begin += kChunk) {
    const auto some = rows.subspan(begin, std::min(kChunk, rows.size() - begin));
    const std::unique_lock hold(mutex_);
    if (spec_.hashed) {
      index_.find_or_add(some, places.data());
      const std::size_t wanted = row_bytes_ * to_size(index_.size());
      if (wanted > rows_.bytes()) rows_.grow(std::max(wanted, rows_.bytes() + rows_.bytes() / 2));
    } else {
      std::ranges::copy(some, places.begin());
    }
    for (std::size_t i = 0; i < some.size(); ++i, values += row_bytes_) {
      std::memcpy(at(places[i]), values, row_bytes_);
      set_old(places[i], false);
    }
    whole_ = nullptr;
  }
}

void LiveRows::drop(std::span<const std::int64_t> rows) {
  for (std::size_t begin = 0; begin < rows.size(); begin += kChunk) {
    const auto some = rows.subspan(begin, std::min(kChunk, rows.size() - begin));
    const std::unique_lock hold(mutex_);
    if (spec_.hashed) {
      erase(some);
    } else {
      for (const std::int64_t row : some) {
        initialize_rows(spec_, seed_, row, 1, spec_.dim(), at(row));
        set_old(row, false);
      }
    }
    whole_ = nullptr;
  }
}

void LiveRows::erase(std::span<const std::int64_t> rows) {
  for (const std::int64_t row : rows) {
    std::int64_t place = IdIndex::kAbsent;
    index_.find({&row, 1}, &place);
    if (place == IdIndex::kAbsent) continue;
    set_old(place, false);
    index_.erase(place);
  }
}

// The marks of old rows are the writer's own, and it alone changes the index: no reader waits.
void LiveRows::begin(RowRange part, const Initializer& initializer, std::uint64_t seed) {
  {
    const std::unique_lock hold(mutex_);
    spec_.initializer = initializer;
    seed_ = seed;
  }
  if (!spec_.hashed) {
    for (std::int64_t row = part.begin; row < part.end; ++row) set_old(row, true);
    return;
  }
  const auto ids = index_.ids();
  for (std::size_t place = 0; place < ids.size(); ++place)
    if (ids[place] >= part.begin && ids[place] < part.end)
      set_old(static_cast<std::int64_t>(place), true);
}

void LiveRows::complete(RowRange part) {
  if (spec_.hashed)
    erase_old(part);
  else
    reset_dense(part);
}

void LiveRows::reset_dense(RowRange part) {
  for (std::int64_t begin = part.begin; begin < part.end; begin += kChunkRows) {
    const std::unique_lock hold(mutex_);
    for (std::int64_t row = begin; row < std::min(begin + kChunkRows, part.end); ++row) {
      if (!is_old(row)) continue;
      initialize_rows(spec_, seed_, row, 1, spec_.dim(), at(row));
      set_old(row, false);
      whole_ = nullptr;
    }
  }
}

void LiveRows::erase_old(RowRange part) {
  for (std::int64_t begin = 0; begin < index_.size(); begin += kChunkRows) {
    const std::unique_lock hold(mutex_);
    const auto end = std::min(begin + kChunkRows, index_.size());
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t id = index_.ids()[to_size(place)];
      if (!is_old(place) || id < part.begin || id >= part.end) continue;
      set_old(place, false);
      index_.erase(place);
    }
  }
}

}  // namespace cairn::serving
