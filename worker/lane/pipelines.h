// Pipelines: a lane's open iterators. A closure names its elements by ordinal, so any lane can
// produce them.
//
// Elements of a data service are the exception (DatasetIterator::reads_once()): a take gets what
// the job has next, whatever its ordinal. The last takes are kept, so that a closure that is run
// again on the same lane reads the same elements; on another lane it reads others.
#pragma once
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "core/tensor/element.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "worker/lane/closure_run.h"

namespace cairn::worker {

struct Taken {
  std::vector<Element> elements;
  Position position;  // after them
};

// Thread: one. take() reads files where the pipeline has no prefetch().
class Pipelines {
 public:
  // Keeps at most `iterators_max` open, so that retried closures of lost lanes do not cost this
  // lane its own place.
  explicit Pipelines(OpenOptions open = {}, std::size_t iterators_max = 4);

  // Again with the same description: nothing happens. With another one: its open iterators go.
  void define(PipelineId pipeline, Dataset dataset);
  void clear();

  // The elements asked for. Goes on with an iterator that stands there, or skips with one before
  // it, unless one that is opened at the state given would be nearer by many elements.
  //   Errors  FailedPrecondition: the pipeline was not defined. ClosureInput: with the code
  //           OutOfRange, the data ends before; names pipeline and position. With that of the
  //           dataset's own error: it could not be read; names the elements wanted.
  Taken take(const Take& wanted);

  std::size_t open_iterators() const { return open_.size(); }
  std::uint64_t opened() const { return opened_; }  // iterators so far
  const ElementSpec& element_spec(PipelineId pipeline) const;

 private:
  struct Open {
    PipelineId pipeline = 0;
    std::unique_ptr<DatasetIterator> iterator;
  };
  const Dataset& dataset(PipelineId pipeline) const;
  std::list<Open>::iterator find(const Take& wanted);
  Taken read(DatasetIterator& iterator, const Take& wanted);
  const Taken* taken_before(const Take& wanted) const;
  void keep(const Take& wanted, const Taken& taken);
  void open_one(const Take& wanted);

  OpenOptions options_;
  std::size_t iterators_max_;
  std::map<PipelineId, Dataset> datasets_;
  std::list<Open> open_;  // last used first
  struct Kept {
    PipelineId pipeline = 0;
    std::uint64_t ordinal = 0;
    Taken taken;
  };
  std::deque<Kept> kept_;  // of data services; the latest last
  std::uint64_t opened_ = 0;
};

}  // namespace cairn::worker
