// DataCursor: an iterator of this process that knows where it stands in its data as a checkpoint
// has it, and can be put where another run stood.
//   Thread  one at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/pipelines.h"
#include "data/dataset.h"
#include "data/dataset_iterator.h"

namespace cairn {

class DataCursor {
 public:
  // `offload`, which outlives it, reads ahead.
  DataCursor(const Dataset& dataset, Offload& offload);

  const ElementSpec& element_spec() const { return iterator_->element_spec(); }
  // The next element; empty at the end of the data.
  //   Errors  those of DatasetIterator::next().
  std::optional<Element> next();
  // How many elements were handed out, by the runs before this one too.
  std::uint64_t ordinal() const;

  // After the elements that were handed out; without a name.
  PipelinePosition position() const;
  // Elements that the other run had taken and never used come first.
  //   Errors  InvalidArgument: the position is one in other data; then nothing has changed.
  void go_to(const PipelinePosition& position);

 private:
  Dataset dataset_;
  OpenOptions options_;
  std::unique_ptr<DatasetIterator> iterator_;
  std::vector<PipelinePosition::Open> open_;  // still to be taken, before what is new
  std::uint64_t new_ = 0;                     // the first of that, while there are open ones
};

}  // namespace cairn
