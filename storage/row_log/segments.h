// Segments: the files of a row log, and which of their records are live.
//
//   A segment is open (records are added at its end), sealed (full, it never changes), or its file
//   is a spare. A sealed segment without live records goes as soon as nothing uses it: no pin (a
//   read, a write, the cleaner) and no cut. Its number is then free for another file.
//   Memory   one bit per record, live or not, and some hundred bytes per segment.
//   Thread   one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/row_log/record.h"

namespace cairn::storage {

struct Segment {
  enum class State : std::uint8_t { kNone, kOpen, kSealed };
  State state = State::kNone;
  // A record could not be read when the segment was cleaned: it stays, with all that it holds.
  bool damaged = false;
  int descriptor = -1;
  std::uint32_t file_number = 0;  // the file's name; no two files of a log ever share one
  std::uint32_t live = 0;
  std::uint32_t pins = 0, cuts = 0;
  std::vector<std::uint64_t> live_bits;
};

// The cleaner may open one segment more than appends, or a full log could never be cleaned.
enum class SegmentUse : std::uint8_t { kAppend, kClean };

class Segments {
 public:
  // Makes the folder anew: what lies in it is removed.
  //   Errors  PermissionDenied: it cannot be made or emptied.
  Segments(std::string folder, const RecordLayout& layout, std::uint64_t max_bytes,
           std::size_t alignment);  // 0: the smallest that the file system takes
  // Removes the folder.
  ~Segments();
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  // Makes sure that open() succeeds `count` times. If it throws, nothing has changed, but that
  // there may be spare files.
  //   Errors  ResourceExhausted: max_bytes, or the disk is full.
  void prepare(std::size_t count, SegmentUse use);
  // Takes a spare file as the next segment, and returns its number.
  std::uint32_t open();
  void seal(std::uint32_t number);

  const Segment& operator[](std::uint32_t number) const { return segments_[number]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(segments_.size()); }
  // Also for files that have gone.
  std::string path(std::uint32_t number) const;
  bool is_live(Place place) const;
  // Whether a record may be read there: it is live, or a cut holds its segment.
  bool is_readable(Place place) const;

  void mark_live(Place place);  // of an open segment
  void release(Place place);    // must be live
  void pin(std::uint32_t number) { ++segments_[number].pins; }
  void unpin(std::uint32_t number);
  void mark_damaged(std::uint32_t number) { segments_[number].damaged = true; }
  // Holds all segments that there are, and returns their numbers.
  std::vector<std::uint32_t> freeze();
  void thaw(const std::vector<std::uint32_t>& numbers);

  // The sealed segment with the fewest live records, at least one, that neither a cut nor damage
  // keeps.
  std::optional<std::uint32_t> emptiest() const;
  struct Usage {
    std::uint64_t live = 0;            // records
    std::uint64_t files = 0;           // spares too
    std::uint64_t frozen = 0;          // of these
    std::uint64_t cleanable = 0;       // files that cleaning may empty, or that are being filled
    std::uint64_t cleanable_live = 0;  // records in these
  };
  Usage usage() const;
  // Reads and writes must begin and end at multiples of this: 512, or what the disk wants.
  std::size_t alignment() const { return alignment_; }
  bool direct() const { return direct_; }  // O_DIRECT; some file systems refuse it

 private:
  struct File {
    int descriptor;
    std::uint32_t number;
  };
  File make_file();
  void allocate(int descriptor, const std::string& path);
  void probe_alignment(int descriptor);
  void remove_file(const File& file);
  void give_back_if_unused(std::uint32_t number);
  std::string file_path(std::uint32_t file_number) const;
  std::uint64_t files() const;

  std::string folder_;
  RecordLayout layout_;
  std::uint64_t max_bytes_;
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> free_numbers_;
  std::vector<File> spares_;
  std::uint32_t last_file_ = 0;
  std::uint64_t live_ = 0;
  std::size_t alignment_;  // 0: not known before there is a file
  bool direct_ = true;
};

}  // namespace cairn::storage
