// Splits: how a dataset is cut into tasks, each of which a data worker reads as a pipeline of its
// own. Descriptions only, but for the size of files of records.
//
// A split is a range of the source's elements, or one of its files. All stages run within a split:
// batches do not straddle splits, and a shuffle() orders the elements of a split. So a range is a
// whole number of batches, and at least as long as a shuffle's buffer.
//   Thread  any.
#pragma once
#include <cstdint>
#include <string>

#include "data/dataset/dataset.h"
#include "service/base/processing_mode.h"

namespace cairn::service {

// The part of a dataset that a task reads.
struct Piece {
  enum class Of : std::uint8_t {
    kAll,
    kRange,  // [begin, end) of the source's elements, in one pass
    kFile,   // file `begin` of the source, in one pass
    kShard,  // the part of `worker` among `workers`
  };
  Of of = Of::kAll;
  std::int64_t begin = 0, end = 0;
  std::int64_t workers = 1, worker = 0;
  std::int64_t order = 0;  // the shuffles' orders differ by it: Dataset::for_pipeline()
  bool operator==(const Piece&) const = default;
};

// The splits of a job in mode kDynamic. A repeat() of the description becomes passes over them.
struct SplitPlan {
  Piece::Of of = Piece::Of::kRange;
  std::int64_t size = 0;    // elements of the source, or files
  std::int64_t each = 1;    // of them in a split
  std::int64_t passes = 1;  // -1: without end
  std::int64_t splits() const { return size / each + (size % each != 0 ? 1 : 0); }
  // The number of tasks, one per split, over all passes; -1: without end.
  std::int64_t tasks() const;
  Piece piece(std::int64_t task) const;
};

// Errors  InvalidArgument: a stage counts over the whole dataset (take, skip, take_while, shard,
//         deal, windows that overlap), or there are several sources: splits cannot; names it and
//         the cure. NotFound: a file of records is missing.
// `together`: so many batches in a row are read together, and a range holds a multiple of them.
// Cost    Looks up the size of the file, if the source is one file of records or IDX.
SplitPlan plan_splits(const Dataset& dataset, std::int64_t together = 1);

// The pipeline of a task.
//   Errors  InvalidArgument: a piece that the dataset has not, and those of auto_shard().
Dataset dataset_of(const Dataset& dataset, const Piece& piece, ProcessingMode mode);

}  // namespace cairn::service
