#include "storage/row_log/row_log.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace cairn::storage {
namespace {

// Rows of one page share a request; a gap of some sectors costs less than a second request.
constexpr ReadShape kRandom = {.urgency = Urgency::kNow, .gap_bytes_max = 1024, .bytes_max = 4096};
constexpr ReadShape kInOrder = {
    .urgency = Urgency::kBehind, .gap_bytes_max = 64 << 10, .bytes_max = 1 << 20};

// Appends the places of a segment's live records from `record` on, the first one of the segment
// being at `first`, until there are `most`. True: `record` is the next one to look at.
bool append_live(const std::vector<std::uint64_t>& live, Place first, std::size_t& record,
                 std::size_t most, std::vector<Place>& places) {
  for (; record < live.size() * 64; ++record) {
    if (places.size() == most) return true;
    const std::uint64_t rest = live[record / 64] >> (record % 64);
    if (rest == 0)
      record |= 63;  // none up to the end of the word
    else if ((rest & 1) != 0)
      places.push_back(first + static_cast<Place>(record));
  }
  return false;
}

}  // namespace

RowLog::RowLog(IoQueue& io, const RowLogOptions& options, Moved moved)
    : io_(io),
      options_(options),
      layout_(RecordLayout::of(options.row_bytes, options.chunk_bytes, options.segment_bytes)),
      segments_(options.folder, layout_, options.max_bytes, options.read_alignment),
      writer_(io, this, segments_, layout_, options.unwritten_bytes_max / layout_.chunk_bytes,
              [this] { cleaner_.advance(); }),
      reads_(io, this, segments_, writer_, layout_),
      cleaner_(io, this, segments_, writer_, layout_, options.space_target, std::move(moved)) {}

RowLog::~RowLog() { io_.forget(this); }

std::size_t RowLog::room() const {
  return std::min(writer_.room(SegmentUse::kAppend), cleaner_.credit());
}

void RowLog::append(std::span<const std::uint64_t> keys, std::span<const std::byte> rows,
                    std::span<Place> places) {
  CAIRN_CHECK(rows.size() == keys.size() * layout_.row_bytes && places.size() == keys.size(),
              keys.size(), " keys, ", rows.size(), " bytes, ", places.size(), " places");
  writer_.repeat_failed();
  if (keys.size() > room())
    throw UnavailableError(str("the row log in ", options_.folder, " takes ", room(), " rows now, ",
                               keys.size(),
                               " are too many: append the rest when writes have ended"));
  make_space(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    places[i] = writer_.add(keys[i], rows.subspan(i * layout_.row_bytes, layout_.row_bytes));
  cleaner_.spend(keys.size());
  appended_rows_ += keys.size();
  cleaner_.try_again();
  io_.start();
}

// Where there is no space for `rows`, the cleaner may gain some, beside what goes on meanwhile.
void RowLog::make_space(std::size_t rows) {
  try {
    writer_.prepare(rows, SegmentUse::kAppend);
  } catch (const ResourceExhaustedError& full) {
    if (!cleaner_.gain_space()) throw;
    throw UnavailableError(str(full.what(), ". The cleaner is making space meanwhile"));
  }
}

void RowLog::release(std::span<const Place> places) {
  for (const Place place : places) segments_.release(place);
  cleaner_.advance();
  io_.start();
}

void RowLog::read(std::span<const Place> places, std::span<const std::uint64_t> keys,
                  RowsDone done) {
  reads_.read(places, keys, kRandom, std::move(done));
}

Cut RowLog::freeze() { return Cut(*this, segments_.freeze(), alive_); }

std::vector<Place> RowLog::live_places(Place first, std::size_t most) const {
  std::vector<Place> places;
  const std::uint32_t per_segment = layout_.records_per_segment;
  auto record = static_cast<std::size_t>(first % per_segment);
  for (std::uint32_t number = first / per_segment; number < segments_.size(); ++number) {
    const bool more =
        append_live(segments_[number].live_bits, number * per_segment, record, most, places);
    if (more) return places;
    record = 0;
  }
  return places;
}

RowLogCounters RowLog::counters() const {
  const Segments::Usage usage = segments_.usage();
  return {.live_rows = usage.live,
          .disk_bytes = usage.files * layout_.segment_bytes,
          .frozen_segments = usage.frozen,
          .unwritten_bytes = writer_.unwritten_chunks() * layout_.chunk_bytes,
          .appended_rows = appended_rows_,
          .moved_rows = cleaner_.moved_rows(),
          .cleaned_segments = cleaner_.cleaned_segments(),
          .damaged_segments = cleaner_.damaged_segments(),
          .direct = segments_.direct()};
}

Cut::Cut(RowLog& log, std::vector<std::uint32_t> segments, std::weak_ptr<const bool> alive)
    : log_(&log), segments_(std::move(segments)), alive_(std::move(alive)) {
  for (const std::uint32_t number : segments_) {
    const Segment& segment = log.segments_[number];
    live_.push_back(segment.live_bits);
    rows_ += segment.live;
  }
}

std::vector<Place> Cut::next_places(std::size_t most) {
  std::vector<Place> places;
  for (; segment_ < live_.size() && places.size() < most; ++segment_, record_ = 0)
    if (append_live(live_[segment_], segments_[segment_] * log_->layout_.records_per_segment,
                    record_, most, places))
      break;
  return places;
}

Cut::Cut(Cut&& other) noexcept { *this = std::move(other); }
Cut& Cut::operator=(Cut&& other) noexcept {
  if (this == &other) return *this;
  end();
  log_ = std::exchange(other.log_, nullptr);
  segments_ = std::move(other.segments_);
  live_ = std::move(other.live_);
  rows_ = other.rows_;
  segment_ = other.segment_;
  record_ = other.record_;
  alive_ = std::move(other.alive_);
  return *this;
}

void Cut::read(std::span<const Place> places, std::span<const std::uint64_t> keys, RowsDone done) {
  CAIRN_CHECK(log_ != nullptr && !alive_.expired(), "the cut has ended");
  log_->reads_.read(places, keys, kInOrder, std::move(done));
}

// A read that is under way keeps its segments by itself.
void Cut::end() {
  if (log_ == nullptr) return;
  RowLog* log = std::exchange(log_, nullptr);
  if (alive_.expired()) return;
  log->segments_.thaw(segments_);
  log->cleaner_.advance();
}

}  // namespace cairn::storage
