#include "coordinator/data_cursor.h"

#include <algorithm>

namespace cairn {

DataCursor::DataCursor(const Dataset& dataset, Offload& offload)
    : dataset_(dataset), options_{.offload = &offload}, iterator_(open(dataset, {}, options_)) {}

std::optional<Element> DataCursor::next() {
  if (open_.empty()) return iterator_->next();
  PipelinePosition::Open& first = open_.front();
  iterator_->skip_to(static_cast<std::int64_t>(first.ordinal));
  auto element = iterator_->next();
  ++first.ordinal;
  if (--first.count == 0) open_.erase(open_.begin());
  if (open_.empty()) iterator_->skip_to(static_cast<std::int64_t>(new_));
  return element;
}

std::uint64_t DataCursor::ordinal() const {
  return open_.empty() ? static_cast<std::uint64_t>(iterator_->ordinal()) : new_;
}

PipelinePosition DataCursor::position() const {
  const auto stands = static_cast<std::uint64_t>(iterator_->ordinal());
  return {{}, ordinal(), open_, {{stands, iterator_->state().bytes}}};
}

// The highest state from which all that is still to come is reached.
void DataCursor::go_to(const PipelinePosition& position) {
  std::vector<PipelinePosition::Open> open = position.open;
  std::ranges::sort(open, {}, &PipelinePosition::Open::ordinal);
  const std::uint64_t lowest = open.empty() ? position.next : open.front().ordinal;
  const auto above = position.states.upper_bound(lowest);
  const IteratorState from{above == position.states.begin() ? std::vector<std::byte>()
                                                            : std::prev(above)->second};
  auto iterator = cairn::open(dataset_, from, options_);
  iterator->skip_to(static_cast<std::int64_t>(lowest));
  iterator_ = std::move(iterator);
  open_ = std::move(open);
  new_ = position.next;
}

}  // namespace cairn
