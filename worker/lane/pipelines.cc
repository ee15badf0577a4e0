#include "worker/lane/pipelines.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "data/dataset/stage_spec.h"
#include "data/stage/dataset_wire.h"

namespace cairn::worker {
namespace {

// The assumed cost of opening an iterator, in elements that could be skipped meanwhile: a shuffle
// fills its buffer again, a compressed file is read from its beginning. Lanes that take turns at
// one pipeline would otherwise open one for each element: the other's state is always the nearest.
constexpr std::uint64_t kOpeningCost = 32;
constexpr std::size_t kKeptTakes = 4;

std::string described(const Take& wanted) {
  return str("elements [", wanted.ordinal, ", ", wanted.ordinal + wanted.count, ") of pipeline ",
             wanted.pipeline);
}

// The one way by which a dataset's failure leaves, distinct from the function's own. OutOfRange is
// kept for the end of the data.
[[noreturn]] void rethrow_input_error(const Error& error, const Take& wanted) {
  const Code code = error.code() == Code::kOutOfRange ? Code::kInvalidArgument : error.code();
  throw ClosureInputError(code, str(error.what(), " (reading ", described(wanted), ")"),
                          error.task(), wanted.pipeline);
}

std::uint64_t stands_at(const DatasetIterator& iterator) {
  return static_cast<std::uint64_t>(iterator.ordinal());
}

}  // namespace

Pipelines::Pipelines(OpenOptions open, std::size_t iterators_max)
    : options_(open), iterators_max_(iterators_max) {}

// The same dataset again, from a coordinator that has come back, keeps its iterators and their
// place.
void Pipelines::define(PipelineId pipeline, Dataset dataset) {
  if (auto known = datasets_.find(pipeline);
      known != datasets_.end() && fingerprint(known->second) == fingerprint(dataset))
    return;
  open_.remove_if([&](const Open& open) { return open.pipeline == pipeline; });
  std::erase_if(kept_, [&](const Kept& kept) { return kept.pipeline == pipeline; });
  datasets_[pipeline] = std::move(dataset);
}

void Pipelines::clear() {
  datasets_.clear();
  open_.clear();
  kept_.clear();
}

const Dataset& Pipelines::dataset(PipelineId pipeline) const {
  auto found = datasets_.find(pipeline);
  if (found == datasets_.end())
    throw FailedPreconditionError(str("pipeline ", pipeline, " has not been opened on this lane"));
  return found->second;
}

const ElementSpec& Pipelines::element_spec(PipelineId pipeline) const {
  return dataset(pipeline).element_spec();
}

// The iterator that has the fewest elements to skip, if it gets there sooner than one that is
// opened at the state that came with the closure. One that stands behind the element is of no use.
std::list<Pipelines::Open>::iterator Pipelines::find(const Take& wanted) {
  auto best = open_.end();
  std::uint64_t best_distance =
      wanted.ordinal - std::min(wanted.ordinal, wanted.state_ordinal) + kOpeningCost;
  for (auto it = open_.begin(); it != open_.end(); ++it) {
    if (it->pipeline != wanted.pipeline) continue;
    if (it->iterator->reads_once()) return it;
    if (stands_at(*it->iterator) > wanted.ordinal) continue;
    const std::uint64_t distance = wanted.ordinal - stands_at(*it->iterator);
    if (distance > best_distance || (best != open_.end() && distance == best_distance)) continue;
    best = it;
    best_distance = distance;
  }
  return best;
}

const Taken* Pipelines::taken_before(const Take& wanted) const {
  for (const Kept& kept : kept_)
    if (kept.pipeline == wanted.pipeline && kept.ordinal == wanted.ordinal &&
        kept.taken.elements.size() == wanted.count)
      return &kept.taken;
  return nullptr;
}

void Pipelines::keep(const Take& wanted, const Taken& taken) {
  kept_.push_back({wanted.pipeline, wanted.ordinal, taken});
  if (kept_.size() > kKeptTakes) kept_.pop_front();
}

// The list is ordered by use, the latest first: the last one that can be opened again is given up.
// A consumer of a data service reads ahead by itself, and what a prefetch() above it held would be
// lost with the iterator.
void Pipelines::open_one(const Take& wanted) {
  const Dataset& source = dataset(wanted.pipeline);
  OpenOptions options = options_;
  if (cairn::reads_once(*source.last())) options.offload = nullptr;
  ++opened_;
  open_.push_front({wanted.pipeline, open(source, cairn::IteratorState{wanted.state}, options)});
  if (open_.size() <= iterators_max_) return;
  const auto again = std::find_if(open_.rbegin(), std::prev(open_.rend()),
                                  [](const Open& open) { return !open.iterator->reads_once(); });
  if (again != std::prev(open_.rend())) open_.erase(std::next(again).base());
}

Taken Pipelines::take(const Take& wanted) {
  dataset(wanted.pipeline);
  if (const Taken* kept = taken_before(wanted)) return *kept;
  auto used = find(wanted);
  Taken taken;
  try {
    if (used == open_.end()) {
      open_one(wanted);
    } else {
      open_.splice(open_.begin(), open_, used);
    }
    taken = read(*open_.front().iterator, wanted);
  } catch (const Error& error) {
    // It may have moved: the closure's retry opens another one at its state. A consumer of a data
    // service has no state, and goes on.
    if (!open_.empty() && open_.front().pipeline == wanted.pipeline &&
        !open_.front().iterator->reads_once() &&
        stands_at(*open_.front().iterator) != wanted.ordinal)
      open_.pop_front();
    rethrow_input_error(error, wanted);
  }
  if (taken.elements.size() < wanted.count)
    throw ClosureInputError(
        Code::kOutOfRange,
        str("end of the data: pipeline ", wanted.pipeline, " ends after element ",
            stands_at(*open_.front().iterator), ", the closure takes ", described(wanted)),
        {}, wanted.pipeline);
  if (open_.front().iterator->reads_once()) keep(wanted, taken);
  return taken;
}

// Fewer than wanted: the data ends there.
Taken Pipelines::read(DatasetIterator& iterator, const Take& wanted) {
  if (stands_at(iterator) != wanted.ordinal)
    iterator.skip_to(static_cast<std::int64_t>(wanted.ordinal));
  Taken taken;
  taken.elements.reserve(wanted.count);
  while (stands_at(iterator) == wanted.ordinal + taken.elements.size() &&
         taken.elements.size() < wanted.count) {
    auto element = iterator.next();
    if (!element) break;
    taken.elements.push_back(std::move(*element));
  }
  taken.position = {stands_at(iterator), iterator.state().bytes,
                    static_cast<std::uint64_t>(iterator.skipped())};
  return taken;
}

}  // namespace cairn::worker
