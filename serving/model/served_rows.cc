#include "serving/model/served_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/error.h"
#include "core/base/look_up.h"
#include "core/rows/gather.h"

namespace cairn::serving {
namespace {

constexpr std::size_t kAhead = 64;  // look-ups whose memory is on its way
constexpr std::size_t kLookUpRows = 4096;

std::size_t row_bytes_of(const VariableSpec& spec) {
  return static_cast<std::size_t>(spec.dim()) * dtype_bytes(spec.dtype);
}

}  // namespace

void WholeRows::read(std::span<const std::int64_t> rows, std::byte* out,
                     std::vector<std::int64_t>&) const {
  const std::size_t bytes =
      static_cast<std::size_t>(value_.shape().rank() == 0 ? 1 : value_.shape().row_elements()) *
      dtype_bytes(value_.dtype());
  gather_rows(value_.raw(), bytes, bytes, rows, out);
}

// ---- reading ----

void PooledRows::read(std::span<const std::int64_t> rows, std::byte* out,
                      std::vector<std::int64_t>& scratch) const {
  if (spec_->hashed) return read_hashed(rows, out, scratch);
  const RowPool& pool = *generation_->pool();
  scratch.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + kAhead < rows.size())
      __builtin_prefetch(&places_[static_cast<std::size_t>(rows[i + kAhead])]);
    scratch[i] = places_[static_cast<std::size_t>(rows[i])];
  }
  gather_rows(pool.base(), pool.row_bytes(), pool.row_bytes(), scratch, out);
}

void PooledRows::read_hashed(std::span<const std::int64_t> rows, std::byte* out,
                             std::vector<std::int64_t>& scratch) const {
  const RowPool& pool = *generation_->pool();
  scratch.resize(rows.size());
  index_.find(rows, scratch.data());
  std::uint64_t unknown = 0;
  for (std::size_t i = 0; i < rows.size(); ++i, out += pool.row_bytes()) {
    if (scratch[i] == IdIndex::kAbsent) {
      initialize_rows(*spec_, seed_, rows[i], 1, spec_->dim(), out);
      ++unknown;
    } else {
      std::memcpy(out, pool.data(places_[static_cast<std::size_t>(scratch[i])]), pool.row_bytes());
    }
  }
  add(counters_->unknown_ids, unknown);
}

Tensor PooledRows::whole() const {
  CAIRN_CHECK(!spec_->hashed, "a hashed variable is read as a whole: ", spec_->name);
  Tensor value(spec_->dtype, spec_->shape);
  std::vector<std::int64_t> rows(places_.size()), scratch;
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  read(rows, value.mutable_raw(), scratch);
  return value;
}

std::size_t PooledRows::bytes() const {
  return places_.size() * (generation_->pool()->row_bytes() + sizeof(std::uint32_t)) +
         index_.bytes();
}

std::size_t PooledRows::shared_bytes() const { return shared_ * generation_->pool()->row_bytes(); }

// ---- making ----

// A pool has room for two versions in which every row differs. Where that does not suffice, because
// many versions are kept, the next one begins a pool of its own.
PooledRowsBuilder::PooledRowsBuilder(std::shared_ptr<const VariableSpec> spec, std::uint64_t seed,
                                     std::shared_ptr<const ServedRows> before,
                                     std::shared_ptr<ReadCounters> counters)
    : rows_(new PooledRows(std::move(spec), seed)),
      before_(std::dynamic_pointer_cast<const PooledRows>(before)) {
  const VariableSpec& of = *rows_->spec_;
  rows_->counters_ = counters != nullptr ? std::move(counters) : std::make_shared<ReadCounters>();
  const bool shares = before_ != nullptr && !before_->generation_->succeeded() &&
                      before_->spec_->shape == of.shape && before_->spec_->dtype == of.dtype &&
                      before_->spec_->hashed == of.hashed;
  if (!shares) before_ = nullptr;
  initial_.resize(row_bytes_of(of));
  if (shares) pool_ = before_->generation_->pool();
  if (!of.hashed) rows_->places_.reserve(static_cast<std::size_t>(of.rows()));
}

PooledRowsBuilder::~PooledRowsBuilder() {
  if (rows_ != nullptr && pool_ != nullptr) pool_->give(taken_);
}

// Rows that are to come are not known yet of a hashed table: its pool is as large as its numbers
// allow, of which memory is used by rows alone.
void PooledRowsBuilder::add(std::int64_t row, const std::byte* values) {
  constexpr std::size_t kPlacesMax = std::size_t{1} << 31;
  const VariableSpec& spec = *rows_->spec_;
  if (pool_ == nullptr)
    pool_ = std::make_shared<RowPool>(
        row_bytes_of(spec), std::min(kPlacesMax, 2 * static_cast<std::size_t>(spec.rows()) + 64));
  if (const std::uint32_t* const place = place_before(row);
      place != nullptr && std::memcmp(pool_->data(*place), values, pool_->row_bytes()) == 0) {
    rows_->places_.push_back(*place);
    ++rows_->shared_;
  } else {
    taken_.push_back(pool_->take());
    std::memcpy(pool_->data(taken_.back()), values, pool_->row_bytes());
    rows_->places_.push_back(taken_.back());
  }
  if (spec.hashed) {
    std::int64_t at = 0;
    rows_->index_.find_or_add({&row, 1}, &at);
  }
}

const std::uint32_t* PooledRowsBuilder::place_before(std::int64_t row) const {
  if (before_ == nullptr) return nullptr;
  std::int64_t at = row;
  if (before_->spec_->hashed) before_->index_.find({&row, 1}, &at);
  return at == IdIndex::kAbsent ? nullptr : &before_->places_[static_cast<std::size_t>(at)];
}

void PooledRowsBuilder::fill_up_to(std::int64_t row) {
  const VariableSpec& spec = *rows_->spec_;
  for (; !spec.hashed && next_ < row; ++next_) {
    initialize_rows(spec, rows_->seed_, next_, 1, spec.dim(), initial_.data());
    add(next_, initial_.data());
  }
}

void PooledRowsBuilder::put(std::int64_t row, const std::byte* values) {
  fill_up_to(row);
  add(row, values);
  next_ = row + 1;
}

// The places of the version before that this one does not read.
std::vector<std::uint32_t> PooledRowsBuilder::replaced() const {
  std::vector<std::uint32_t> replaced;
  const std::vector<std::uint32_t>& old = before_->places_;
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (i % kLookUpRows == 0) look_up();
    auto at = static_cast<std::int64_t>(i);
    if (rows_->spec_->hashed) rows_->index_.find(before_->index_.ids().subspan(i, 1), &at);
    if (at == IdIndex::kAbsent || rows_->places_[static_cast<std::size_t>(at)] != old[i])
      replaced.push_back(old[i]);
  }
  return replaced;
}

std::shared_ptr<const ServedRows> PooledRowsBuilder::finish() {
  fill_up_to(rows_->spec_->rows());
  if (pool_ == nullptr) pool_ = std::make_shared<RowPool>(row_bytes_of(*rows_->spec_), 1);
  rows_->generation_ = std::make_shared<Generation>(pool_);
  if (before_ == nullptr)
    pool_->settle();
  else
    CAIRN_CHECK(before_->generation_->succeed(rows_->generation_, replaced()),
                "two versions at once follow one");
  return std::shared_ptr<const ServedRows>(rows_.release());
}

}  // namespace cairn::serving
