#include "storage/row_log/cleaner.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"

namespace cairn::storage {
namespace {

// The open segment is there however few rows are live.
constexpr std::uint64_t kSlackSegments = 1;
// Files may take so much more than the target before appends have to wait.
constexpr double kTolerance = 0.03;
// A fuller segment is not worth copying, unless an append needs the space: of a log of a few
// segments all may be that full.
constexpr double kLiveShareMax = 0.8, kLiveShareMaxInNeed = 0.875;
constexpr std::size_t kNoBound = std::numeric_limits<std::size_t>::max();

}  // namespace

Cleaner::Cleaner(IoQueue& io, IoQueue::Owner owner, Segments& segments, RecordWriter& writer,
                 const RecordLayout& layout, double target, Moved moved)
    : io_(io),
      owner_(owner),
      segments_(segments),
      writer_(writer),
      layout_(layout),
      target_(target),
      moved_(std::move(moved)) {}

// Segments that a cut holds count on neither side: to copy their rows would only take more room.
bool Cleaner::exceeds(double ratio) const {
  const Segments::Usage usage = segments_.usage();
  if (usage.cleanable <= kSlackSegments) return false;
  const double bytes =
      static_cast<double>((usage.cleanable - kSlackSegments) * layout_.segment_bytes);
  const double live = static_cast<double>(usage.cleanable_live * layout_.row_bytes);
  return bytes > ratio * live;
}

std::optional<std::uint32_t> Cleaner::victim(double live_share_max) const {
  const std::optional<std::uint32_t> emptiest = segments_.emptiest();
  if (!emptiest) return std::nullopt;
  const double share = static_cast<double>(segments_[*emptiest].live) /
                       static_cast<double>(layout_.records_per_segment);
  return share <= live_share_max ? emptiest : std::nullopt;
}

void Cleaner::advance() {
  while (!reading_ && !copying_ && !stuck_) {
    if (!segment_) {
      if (!exceeds(target_)) return;
      segment_ = victim(kLiveShareMax);
      if (!segment_) return;
      segments_.pin(*segment_);
      record_ = 0;
    }
    if (writer_.room(SegmentUse::kClean) < layout_.records_per_chunk) return;
    if (!next_chunk())
      end();
    else
      read_chunk();
  }
}

void Cleaner::try_again() {
  stuck_ = false;
  advance();
}

bool Cleaner::gain_space() {
  if (reading_) return true;
  if (std::exchange(stuck_, false)) return false;  // once, before it is tried anew
  if (!segment_) {
    segment_ = victim(kLiveShareMaxInNeed);
    if (!segment_) return false;
    segments_.pin(*segment_);
    record_ = 0;
  }
  advance();
  return true;
}

std::size_t Cleaner::credit() const {
  if (!segment_ || !exceeds(target_ + kTolerance)) return kNoBound;
  return credit_;
}

void Cleaner::spend(std::size_t records) { credit_ -= std::min(credit_, records); }

// Moves on to the next chunk with live records, if there is one.
bool Cleaner::next_chunk() {
  const Place first = *segment_ * layout_.records_per_segment;
  while (record_ < layout_.records_per_segment) {
    if (segments_.is_live(first + record_)) {
      record_ -= record_ % static_cast<std::uint32_t>(layout_.records_per_chunk);
      return true;
    }
    ++record_;
  }
  return false;
}

void Cleaner::read_chunk() {
  const Place first = *segment_ * layout_.records_per_segment + record_;
  reading_ = true;
  if (writer_.find_chunk(layout_.chunk(first)) != nullptr) {
    // From memory, but later: the owner may not have taken note yet of places that it was given.
    io_.post(owner_, [this] { copy_unwritten(); });
    return;
  }
  io_.read(owner_, segments_[*segment_].descriptor, layout_.offset(first), layout_.chunk_bytes,
           Urgency::kBehind, [this](int error, const std::byte* data) { chunk_read(error, data); });
  io_.start();
}

// If the chunk has been written meanwhile, advance() has it read.
void Cleaner::copy_unwritten() {
  reading_ = false;
  const Place first = *segment_ * layout_.records_per_segment + record_;
  const std::byte* unwritten = writer_.find_chunk(layout_.chunk(first));
  if (unwritten != nullptr) copy_survivors(unwritten);
  advance();
}

void Cleaner::chunk_read(int error, const std::byte* data) {
  reading_ = false;
  if (error != 0)
    give_up(str("cannot read it: ", strerror(error)));
  else
    copy_survivors(data);
  advance();
}

// A chunk's worth of records is copied at once, with nothing in between: whoever reads a place
// before has the old one, afterwards the new one.
void Cleaner::copy_survivors(const std::byte* chunk) {
  const std::uint32_t segment = *segment_;
  const Place first = segment * layout_.records_per_segment + record_;
  std::vector<Move> moves;
  for (Place place = first; place < first + layout_.records_per_chunk; ++place) {
    if (!segments_.is_live(place)) continue;
    const RecordView view = read_record(layout_, segments_[segment].file_number,
                                        chunk + layout_.offset_in_chunk(place));
    if (!view.sound) {
      give_up(str("the checksum of the record at offset ", layout_.offset(place), " is wrong"));
      return;
    }
    moves.push_back({view.key, place, kNoPlace});
  }
  try {
    writer_.prepare(moves.size(), SegmentUse::kClean);
  } catch (const ResourceExhaustedError&) {
    stuck_ = true;
    segments_.unpin(*std::exchange(segment_, std::nullopt));
    return;
  }
  for (Move& move : moves) {
    const std::byte* record = chunk + layout_.offset_in_chunk(move.from);
    const RecordView view = read_record(layout_, segments_[segment].file_number, record);
    move.to = writer_.add(move.key, view.row);
    segments_.release(move.from);
  }
  record_ += static_cast<std::uint32_t>(layout_.records_per_chunk);
  moved_rows_ += moves.size();
  // Appends get a half of what was reclaimed, so that the files shrink while they go on.
  credit_ += (layout_.records_per_chunk - moves.size()) / 2;
  credit_ = std::min<std::size_t>(credit_, layout_.records_per_segment);
  copying_ = true;  // an owner that releases rows meanwhile does not begin the next chunk
  if (!moves.empty()) moved_(moves);
  copying_ = false;
}

// Its other rows can still be read where they are; the damaged one is an error where it is wanted.
void Cleaner::give_up(const std::string& why) {
  log_warning("the segment ", segments_.path(*segment_), " of a row log is not cleaned: ", why);
  segments_.mark_damaged(*segment_);
  ++damaged_segments_;
  end();
}

void Cleaner::end() {
  const std::uint32_t segment = *std::exchange(segment_, std::nullopt);
  if (!segments_[segment].damaged) ++cleaned_segments_;
  segments_.unpin(segment);
}

}  // namespace cairn::storage
