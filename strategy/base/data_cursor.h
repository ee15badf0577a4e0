// DataCursor: an iterator of this process that knows where it stands in its data as a checkpoint
// has it, and can be put where another run stood.
//   Thread  one at a time.
#pragma once
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/progress/pipelines.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"

namespace cairn {

class DataCursor {
 public:
  // `offload`, which outlives it, reads ahead.
  DataCursor(const Dataset& dataset, Offload& offload);

  const ElementSpec& element_spec() const { return iterator_->element_spec(); }
  // The next element; empty at the end of the data.
  //   Errors  those of DatasetIterator::next().
  std::optional<Element> next();
  // Reads what the next calls of next() return, up to `elements` of them; these. The cursor stands
  // where it stood, in checkpoints too. Errors of the data are raised by next(). Of a data service
  // nothing is read, since what it has handed out does not come again.
  std::vector<Element> read_ahead(std::size_t elements);
  // The element that next() returns after `calls` further calls; nullptr if it was not read ahead,
  // or the data ends before it.
  const Element* ahead(std::size_t calls) const;
  // How many elements were handed out, by the runs before this one too.
  std::uint64_t ordinal() const;

  const Dataset& dataset() const { return dataset_; }
  // After the elements that were handed out; without a name.
  PipelinePosition position() const;
  // Elements that the other run had taken and never used come first.
  //   Errors  InvalidArgument: the position is one in other data; then nothing has changed.
  void go_to(const PipelinePosition& position);

 private:
  struct Ahead {
    PipelinePosition before;
    std::optional<Element> element;  // empty: the end of the data, or an error
    std::exception_ptr error;
  };
  std::optional<Element> read();
  PipelinePosition position_of_iterator() const;

  Dataset dataset_;
  OpenOptions options_;
  std::unique_ptr<DatasetIterator> iterator_;
  std::vector<PipelinePosition::Open> open_;  // still to be taken, before what is new
  std::uint64_t new_ = 0;                     // the first of that, while there are open ones
  std::deque<Ahead> ahead_;                   // in the order in which next() returns it
};

}  // namespace cairn
