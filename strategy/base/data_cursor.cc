#include "strategy/base/data_cursor.h"

#include <algorithm>

namespace cairn {

DataCursor::DataCursor(const Dataset& dataset, Offload& offload)
    : dataset_(dataset), options_{.offload = &offload}, iterator_(open(dataset, {}, options_)) {}

std::optional<Element> DataCursor::next() {
  if (ahead_.empty()) return read();
  Ahead first = std::move(ahead_.front());
  ahead_.pop_front();
  if (first.error) std::rethrow_exception(first.error);
  return std::move(first.element);
}

// Stops at the end of the data and at an error, after which the iterator has not moved.
std::vector<Element> DataCursor::read_ahead(std::size_t elements) {
  std::vector<Element> read_now;
  while (ahead_.size() < elements && !iterator_->reads_once() &&
         (ahead_.empty() || ahead_.back().element)) {
    Ahead& one = ahead_.emplace_back();
    one.before = position_of_iterator();
    try {
      one.element = read();
    } catch (...) {
      one.error = std::current_exception();
    }
  }
  for (std::size_t i = 0; i < elements; ++i)
    if (const Element* one = ahead(i)) read_now.push_back(*one);
  return read_now;
}

const Element* DataCursor::ahead(std::size_t calls) const {
  return calls < ahead_.size() && ahead_[calls].element ? &*ahead_[calls].element : nullptr;
}

std::optional<Element> DataCursor::read() {
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
  if (!ahead_.empty()) return ahead_.front().before.next;
  return open_.empty() ? static_cast<std::uint64_t>(iterator_->ordinal()) : new_;
}

PipelinePosition DataCursor::position() const {
  return ahead_.empty() ? position_of_iterator() : ahead_.front().before;
}

PipelinePosition DataCursor::position_of_iterator() const {
  const auto stands = static_cast<std::uint64_t>(iterator_->ordinal());
  return {{}, open_.empty() ? stands : new_, open_, {{stands, iterator_->state().bytes}}};
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
  ahead_.clear();
  open_ = std::move(open);
  new_ = position.next;
}

}  // namespace cairn
