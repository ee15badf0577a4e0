// Events while lines and records of files are read: reported one by one (LineEvents), or kept
// (LinesRead). A TFRecord counts as a line here.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cairn {

// How many of the lines left out are reported one by one; the rest are only counted.
inline constexpr int kSkippedRowsTold = 20;

// Called on the thread that reads, which is one of OpenOptions::offload below a prefetch().
struct LineEvents {
  // A line was left out under OnError::kSkipAndCount: "FILE:LINE:CHARACTER: ..." or, of a TFRecord,
  // "FILE: record 3 (from 0) at byte 120: ...". Called for the first
  // kSkippedRowsTold lines of a source; DatasetIterator::skipped() counts all.
  std::function<void(const std::string& why)> on_skipped_row = nullptr;
  // A file without a single row, good or bad, was passed over (EmptyFiles::kSkip).
  std::function<void(const std::string& path)> on_empty_file = nullptr;
  // So many more rows were left out by CsvSchema::where, or by CsvLabel::skip_unknown because their
  // label is unknown. Rows that are read again are reported again.
  std::function<void(std::int64_t rows)> on_filtered_rows = nullptr, on_unlabelled_rows = nullptr;
};

// The events of reading the files of a dataset once.
struct LinesRead {
  std::int64_t skipped = 0;  // lines left out (OnError::kSkipAndCount)
  // up to kSkippedRowsTold of them: "FILE:LINE:CHARACTER: ..."
  std::vector<std::string> first_skipped;
  std::vector<std::string> empty_files;  // paths of files without a row (EmptyFiles::kSkip)
  std::int64_t filtered = 0;             // rows left out by conditions (CsvSchema::where)
  std::int64_t unlabelled = 0;           // rows left out for their label (CsvLabel::skip_unknown)
};

}  // namespace cairn
