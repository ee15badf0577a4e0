#include "strategy/base/dealt_iterator.h"

namespace cairn {

namespace {

const Dataset& of_batches(const Dataset& dataset) {
  if (dataset.batched()) return dataset;
  throw InvalidArgumentError(
      "the dataset's elements are single examples, which cannot be dealt out to several replicas: "
      "batch() it, by the global batch size");
}

}  // namespace

DealtIterator::DealtIterator(const Dataset& dataset, Dealing how, int replicas, Offload& offload,
                             bool fetches)
    : whole_(of_batches(dataset).element_spec()),
      spec_(whole_),
      how_(how),
      replicas_(replicas),
      fixed_size_(has_fixed_size(whole_)),
      fetches_(fetches),
      cursor_(dataset, offload) {
  if (how_ == Dealing::kCut) spec_ = pieces_spec(whole_, replicas_);
  if (how_ == Dealing::kInTurnOfSome) spec_ = any_size_spec(whole_);
}

std::vector<Element> DealtIterator::next() const {
  return how_ == Dealing::kCut ? cut() : in_turn();
}

namespace {

OutOfRangeError end_of_data(const DataCursor& cursor) {
  return OutOfRangeError(str("the data ended after ", cursor.ordinal(), " batches"));
}

}  // namespace

// A short last batch is cut by its own size.
std::vector<Element> DealtIterator::cut() const {
  const auto batch = cursor_.next();
  if (!batch) throw end_of_data(cursor_);
  return cut_in_pieces(whole_, *batch, replicas_);
}

// An empty batch is cut off a full one, which has the right columns and inner dimensions.
std::vector<Element> DealtIterator::in_turn() const {
  std::vector<Element> elements;
  for (int i = 0; i < replicas_; ++i) {
    auto element = cursor_.next();
    if (!element) break;
    elements.push_back(std::move(*element));
  }
  const bool fixed_size = fixed_size_ && how_ == Dealing::kInTurn;
  const bool some = !elements.empty(), all = elements.size() == static_cast<std::size_t>(replicas_);
  if (!some || (!all && fixed_size)) throw end_of_data(cursor_);
  while (elements.size() < static_cast<std::size_t>(replicas_))
    elements.push_back(cut_batch(whole_, elements.front(), 0, 0));
  return elements;
}

// Pieces of a batch are rows of it, so that next() will give values that lie where these do.
std::vector<std::vector<Tensor>> DealtIterator::read_ahead(std::size_t calls) const {
  const auto replicas = static_cast<std::size_t>(replicas_);
  const std::size_t per_call = how_ == Dealing::kCut ? 1 : replicas;
  std::vector<std::vector<Tensor>> by_replica(replicas);
  const std::vector<Element> elements = cursor_.read_ahead(calls * per_call);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::vector<Element> pieces{elements[i]};
    if (how_ == Dealing::kCut) {
      try {
        pieces = cut_in_pieces(whole_, elements[i], replicas_);
      } catch (const InvalidArgumentError&) {
        break;  // the step that takes it says what is wrong with it
      }
    }
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      std::vector<Tensor>& to = by_replica[how_ == Dealing::kCut ? k : i % replicas];
      to.insert(to.end(), pieces[k].begin(), pieces[k].end());
    }
  }
  return by_replica;
}

}  // namespace cairn
