#include "storage/row_log/segments.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "storage/row_log/aligned_buffer.h"

namespace cairn::storage {
namespace {

namespace fs = std::filesystem;

// A file that has become empty is kept for the next segment, and this many at most: its blocks are
// allocated and written already.
constexpr std::size_t kSparesMax = 1;

bool disk_is_full(int error) { return error == ENOSPC || error == EDQUOT; }

std::uint64_t bit_of(std::uint32_t record) { return std::uint64_t{1} << (record % 64); }

}  // namespace

Segments::Segments(std::string folder, const RecordLayout& layout, std::uint64_t max_bytes,
                   std::size_t alignment)
    : folder_(std::move(folder)), layout_(layout), max_bytes_(max_bytes), alignment_(alignment) {
  if (max_bytes_ / layout_.segment_bytes < 3)
    throw InvalidArgumentError(str("the row log in ", folder_, " may take ", max_bytes_,
                                   " bytes, and needs three segments of ", layout_.segment_bytes,
                                   ": raise max_bytes, or make segments smaller"));
  std::error_code error;
  fs::remove_all(folder_, error);
  if (!error) fs::create_directories(folder_, error);
  if (error)
    throw PermissionDeniedError(
        str("cannot make the folder ", folder_, " of a row log anew: ", error.message()));
}

Segments::~Segments() {
  for (const Segment& each : segments_)
    if (each.descriptor >= 0) ::close(each.descriptor);
  for (const File& each : spares_) ::close(each.descriptor);
  std::error_code error;
  fs::remove_all(folder_, error);
}

std::string Segments::file_path(std::uint32_t file_number) const {
  return str(folder_, "/", file_number);
}
std::string Segments::path(std::uint32_t number) const {
  return file_path(segments_[number].file_number);
}

std::uint64_t Segments::files() const {
  return segments_.size() - free_numbers_.size() + spares_.size();
}

void Segments::prepare(std::size_t count, SegmentUse use) {
  const std::uint64_t reserve = use == SegmentUse::kAppend ? 1 : 0;
  const std::uint64_t used = files() - spares_.size();
  if ((used + count + reserve) * layout_.segment_bytes > max_bytes_)
    throw ResourceExhaustedError(str("the row log in ", folder_, " is full: ", used,
                                     " segments of ", layout_.segment_bytes, " bytes hold ", live_,
                                     " live rows of ", layout_.row_bytes, " bytes, of ", max_bytes_,
                                     " bytes that it may take. Release rows, or "
                                     "raise max_bytes"));
  const std::uint64_t numbers = kNoPlace / layout_.records_per_segment;
  if (used + count > numbers)
    throw ResourceExhaustedError(str("the row log in ", folder_, " is full: its ", used,
                                     " segments hold all of the 2^32 records that it can number. "
                                     "Use more shards"));
  while (spares_.size() < count) spares_.push_back(make_file());
}

Segments::File Segments::make_file() {
  const std::uint32_t number = last_file_ + 1;
  const std::string path = file_path(number);
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  int descriptor = direct_ ? ::open(path.c_str(), kFlags | O_DIRECT, 0600) : -1;
  if (descriptor < 0 && (!direct_ || errno == EINVAL)) {
    ::unlink(path.c_str());  // a file system that refuses O_DIRECT has made the file
    direct_ = false;
    descriptor = ::open(path.c_str(), kFlags, 0600);
  }
  if (descriptor < 0) {
    const int error = errno;
    const std::string message = str("cannot make the segment ", path, ": ", strerror(error));
    if (disk_is_full(error)) throw ResourceExhaustedError(message + ". Free space on that disk");
    if (error == EMFILE || error == ENFILE)
      throw ResourceExhaustedError(
          message + ". Raise the limit of open files (ulimit -n), or make segments larger");
    throw PermissionDeniedError(message);
  }
  last_file_ = number;
  const File file = {descriptor, number};
  try {
    allocate(descriptor, path);
    if (alignment_ == 0) probe_alignment(descriptor);
  } catch (...) {
    remove_file(file);
    throw;
  }
  return file;
}

// All blocks at once: a write into them later needs no new ones, so it cannot find the disk full,
// and does not wait for the file system's lists of blocks.
void Segments::allocate(int descriptor, const std::string& path) {
  const auto bytes = static_cast<off_t>(layout_.segment_bytes);
  if (::fallocate(descriptor, 0, 0, bytes) == 0) return;
  int error = errno;
  if (error == EOPNOTSUPP && ::ftruncate(descriptor, bytes) == 0) return;
  if (error == EOPNOTSUPP) error = errno;
  throw ResourceExhaustedError(str("cannot allocate the ", bytes, " bytes of the segment ", path,
                                   ": ", strerror(error),
                                   ". Free space on that disk, or lower max_bytes"));
}

void Segments::probe_alignment(int descriptor) {
  constexpr std::size_t kSector = 512;
  const AlignedBuffer buffer = make_aligned_buffer(kDirectAlignment);
  const bool small = ::pread(descriptor, buffer.get(), kSector, kSector) >= 0;
  alignment_ = small ? kSector : kDirectAlignment;
}

void Segments::remove_file(const File& file) {
  ::close(file.descriptor);
  ::unlink(file_path(file.number).c_str());
}

std::uint32_t Segments::open() {
  CAIRN_CHECK(!spares_.empty(), "open() without prepare()");
  const File file = spares_.back();
  spares_.pop_back();
  std::uint32_t number = size();
  if (free_numbers_.empty()) {
    segments_.emplace_back();
  } else {
    number = free_numbers_.back();
    free_numbers_.pop_back();
  }
  Segment& segment = segments_[number];
  segment = {};
  segment.state = Segment::State::kOpen;
  segment.descriptor = file.descriptor;
  segment.file_number = file.number;
  segment.live_bits.assign((layout_.records_per_segment + 63) / 64, 0);
  return number;
}

void Segments::seal(std::uint32_t number) {
  segments_[number].state = Segment::State::kSealed;
  give_back_if_unused(number);
}

bool Segments::is_live(Place place) const {
  const std::uint32_t number = layout_.segment(place);
  if (number >= size() || segments_[number].state == Segment::State::kNone) return false;
  const std::uint32_t record = place % layout_.records_per_segment;
  return (segments_[number].live_bits[record / 64] & bit_of(record)) != 0;
}

bool Segments::is_readable(Place place) const {
  const std::uint32_t number = layout_.segment(place);
  return is_live(place) || (number < size() && segments_[number].cuts > 0);
}

void Segments::mark_live(Place place) {
  Segment& segment = segments_[layout_.segment(place)];
  const std::uint32_t record = place % layout_.records_per_segment;
  segment.live_bits[record / 64] |= bit_of(record);
  ++segment.live;
  ++live_;
}

void Segments::release(Place place) {
  CAIRN_CHECK(is_live(place), "no row lies at place ", place, " of the row log in ", folder_,
              ": it was released before");
  const std::uint32_t number = layout_.segment(place);
  const std::uint32_t record = place % layout_.records_per_segment;
  segments_[number].live_bits[record / 64] &= ~bit_of(record);
  --segments_[number].live;
  --live_;
  give_back_if_unused(number);
}

void Segments::unpin(std::uint32_t number) {
  --segments_[number].pins;
  give_back_if_unused(number);
}

std::vector<std::uint32_t> Segments::freeze() {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t number = 0; number < size(); ++number) {
    if (segments_[number].state == Segment::State::kNone) continue;
    ++segments_[number].cuts;
    numbers.push_back(number);
  }
  return numbers;
}

void Segments::thaw(const std::vector<std::uint32_t>& numbers) {
  for (const std::uint32_t number : numbers) {
    --segments_[number].cuts;
    give_back_if_unused(number);
  }
}

void Segments::give_back_if_unused(std::uint32_t number) {
  Segment& segment = segments_[number];
  if (segment.state != Segment::State::kSealed) return;
  if (segment.live > 0 || segment.pins > 0 || segment.cuts > 0) return;
  const File file = {segment.descriptor, segment.file_number};
  segment.state = Segment::State::kNone;
  segment.descriptor = -1;
  segment.live_bits = {};
  free_numbers_.push_back(number);
  if (spares_.size() >= kSparesMax || segment.damaged) {
    remove_file(file);
    return;
  }
  // Under a new number, so that no record of before is sound in it.
  const File renamed = {file.descriptor, last_file_ + 1};
  if (::rename(file_path(file.number).c_str(), file_path(renamed.number).c_str()) != 0) {
    remove_file(file);
    return;
  }
  ++last_file_;
  spares_.push_back(renamed);
}

std::optional<std::uint32_t> Segments::emptiest() const {
  std::optional<std::uint32_t> found;
  for (std::uint32_t number = 0; number < size(); ++number) {
    const Segment& each = segments_[number];
    if (each.state != Segment::State::kSealed || each.cuts > 0 || each.damaged) continue;
    if (each.live == 0) continue;  // it goes when its last read has ended
    if (!found || each.live < segments_[*found].live) found = number;
  }
  return found;
}

Segments::Usage Segments::usage() const {
  Usage usage;
  usage.live = live_;
  usage.files = files();
  usage.cleanable = spares_.size();
  for (const Segment& each : segments_) {
    if (each.state == Segment::State::kNone) continue;
    if (each.cuts > 0) ++usage.frozen;
    if (each.cuts > 0 || each.damaged) continue;
    ++usage.cleanable;
    usage.cleanable_live += each.live;
  }
  return usage;
}

}  // namespace cairn::storage
