#include "serving/model/ps_tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/memory/arena.h"

namespace cairn::serving {
namespace {

constexpr Duration kLookAgain = std::chrono::seconds(1);

}  // namespace

// Rows by number, each in the one place that its number has.
class PsTables::KnownRows {
 public:
  KnownRows(const VariableSpec& spec, std::size_t bytes)
      : row_bytes_(static_cast<std::size_t>(spec.dim()) * dtype_bytes(spec.dtype)),
        places_(std::clamp<std::size_t>(bytes / (row_bytes_ + sizeof(std::int64_t)), 1,
                                        static_cast<std::size_t>(spec.rows()))),
        numbers_(places_, -1),
        rows_(places_ * row_bytes_) {}

  void put(std::int64_t row, const std::byte* values) {
    const std::size_t place = place_of(row);
    const std::lock_guard hold(lock_of(place));
    numbers_[place] = row;
    std::memcpy(rows_.data() + place * row_bytes_, values, row_bytes_);
  }
  bool get(std::int64_t row, std::byte* out) {
    const std::size_t place = place_of(row);
    const std::lock_guard hold(lock_of(place));
    if (numbers_[place] != row) return false;
    std::memcpy(out, rows_.data() + place * row_bytes_, row_bytes_);
    return true;
  }
  std::size_t row_bytes() const { return row_bytes_; }
  std::size_t bytes() const { return places_ * (row_bytes_ + sizeof(std::int64_t)); }

 private:
  // Neighbours stay neighbours, and numbers of hashed tables are spread already.
  std::size_t place_of(std::int64_t row) const { return static_cast<std::uint64_t>(row) % places_; }
  std::mutex& lock_of(std::size_t place) { return locks_[place % locks_.size()]; }

  const std::size_t row_bytes_, places_;
  std::vector<std::int64_t> numbers_;  // by place; -1: no row is known there
  Arena rows_;
  std::array<std::mutex, 64> locks_;
};

PsTables::PsTables(const std::vector<VariableSpec>& tables, std::uint64_t seed,
                   PsTablesOptions options)
    : options_(std::move(options)), seed_(seed) {
  for (const VariableSpec& spec : tables)
    known_[spec.name] = std::make_unique<KnownRows>(spec, options_.known_bytes / tables.size());
  look_again();
}

PsTables::~PsTables() = default;

std::size_t PsTables::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, known] : known_) bytes += known->bytes();
  return bytes;
}

std::shared_ptr<RowReader> PsTables::reader() {
  const std::lock_guard hold(mutex_);
  return reader_;
}

void PsTables::look_again() {
  const std::lock_guard hold(mutex_);
  const TimePoint now = system_clock().now();
  if (looked_ != TimePoint::min() && now - looked_ < kLookAgain) return;
  looked_ = now;
  try {
    RowStreamOptions place = options_.where();
    if (reader_ != nullptr && place.ps == place_.ps && place.cluster == place_.cluster &&
        place.token == place_.token)
      return;
    reader_ = std::make_shared<RowReader>(place);
    place_ = std::move(place);
  } catch (const UnavailableError&) {  // the run has not begun, or has ended
  }
}

// A ps that refuses this reader, or has another model, is told of once; all rows are missing then.
RowsRead PsTables::ask(std::span<const RowsWanted> wanted) {
  std::string trouble = "the run has not begun, or has ended";
  if (const auto from = reader(); from != nullptr) {
    try {
      RowsRead got = from->read(wanted, options_.patience);
      seed_ = from->seed() != 0 ? from->seed() : seed_.load();
      const std::lock_guard hold(mutex_);
      if (got.complete() && !std::exchange(trouble_, "").empty())
        log_info("rows come from the ps again");
      return got;
    } catch (const Error& error) {
      trouble = error.what();
    }
  }
  {
    const std::lock_guard hold(mutex_);
    if (std::exchange(trouble_, trouble) != trouble)
      log_warning("no rows come from the ps, and those that are known serve: ", trouble);
  }
  RowsRead none;
  for (const RowsWanted& each : wanted) {
    none.missing.emplace_back(each.rows.size());
    for (std::size_t i = 0; i < each.rows.size(); ++i) none.missing.back()[i] = i;
  }
  return none;
}

std::int64_t PsTables::read(std::span<const Wanted> wanted) {
  std::vector<RowsWanted> asked;
  std::size_t all = 0;
  for (const Wanted& each : wanted) {
    asked.push_back({each.table->name, each.rows, each.out});
    all += each.rows.size();
  }
  const RowsRead got = ask(asked);
  std::int64_t late = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    late += take(wanted[i], i < got.missing.size() ? got.missing[i] : std::vector<std::size_t>(),
                 seed_);
  for (std::int64_t step = step_; step < got.step && !step_.compare_exchange_weak(step, got.step);)
    ;
  if (late > 0) add(options_.counters->stale_rows, static_cast<std::uint64_t>(late));
  if (late > 0 && late == static_cast<std::int64_t>(all)) look_again();
  return late;
}

// Keeps the rows that came, and has known or initial values take the places of the others.
std::int64_t PsTables::take(const Wanted& wanted, const std::vector<std::size_t>& missing,
                            std::uint64_t seed) {
  KnownRows& known = *known_.at(wanted.table->name);
  // The run's initial values may be others than the model's, which says nothing of them if it was
  // saved with all rows. Given ones are known to the model alone.
  const bool given = wanted.table->initializer.kind == Initializer::Kind::kValue;
  std::shared_ptr<const VariableSpec> of_run;
  if (const auto from = reader(); from != nullptr && !missing.empty() && !given)
    of_run = from->variable(wanted.table->name, Duration::zero());
  const VariableSpec& spec = of_run != nullptr ? *of_run : *wanted.table;
  std::vector<bool> is_missing(wanted.rows.size());
  for (const std::size_t i : missing) is_missing.at(i) = true;
  for (std::size_t i = 0; i < wanted.rows.size(); ++i) {
    std::byte* const at = wanted.out + i * known.row_bytes();
    if (!is_missing[i])
      known.put(wanted.rows[i], at);
    else if (!known.get(wanted.rows[i], at))
      initialize_rows(spec, seed, wanted.rows[i], 1, spec.dim(), at);
  }
  return static_cast<std::int64_t>(missing.size());
}

void PsRows::read(std::span<const std::int64_t> rows, std::byte* out,
                  std::vector<std::int64_t>&) const {
  const PsTables::Wanted wanted{&spec_, rows, out};
  tables_->read({&wanted, 1});
}

Tensor PsRows::whole() const {
  throw InternalError(str("the table ", spec_.name, " is read as a whole, and lies on the ps"));
}

}  // namespace cairn::serving
