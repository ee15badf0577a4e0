#include "coordinator/progress/progress_book.h"

#include <algorithm>
#include <map>

#include "core/base/log.h"
#include "data/stage/dataset_wire.h"

namespace cairn {
namespace {

// The first pipeline speaks for the others: their descriptions differ in a number alone. A dataset
// in another number of pipelines begins anew.
void verify_one(const std::string& name, std::size_t pipelines,
                const std::vector<std::byte>& description,
                const std::vector<PipelinePosition>& positions) {
  const auto own = positions_of(positions, name);
  if (own.empty() || own.size() != pipelines || description.empty()) return;
  if (!is_position_in(parse_dataset(description), *own.front())) throw other_dataset(name);
}

}  // namespace

void ProgressBook::save_every(std::int64_t every) {
  save_every_ = every;
  saved_at_step_ = global_step_;
}

std::shared_ptr<const PerWorkerDataset> ProgressBook::add_dataset(
    std::string name, std::vector<std::vector<std::byte>> descriptions, ElementSpec spec,
    bool shared) {
  if (!looked_up_.contains(name) && !descriptions.empty())
    verify_one(name, descriptions.size(), descriptions.front(), restored_);
  auto first = static_cast<std::uint64_t>(pipelines_.size());
  for (std::size_t i = 0; i < descriptions.size(); ++i) pipelines_.emplace_back(str(name, "/", i));
  skipped_.resize(pipelines_.size());
  auto dataset = std::make_shared<const PerWorkerDataset>(
      std::move(name), first, std::move(descriptions), std::move(spec), shared);
  datasets_.push_back(dataset);
  restore_positions();
  return dataset;
}

void ProgressBook::begin_anew(const std::string& name) { looked_up_.insert(name); }

std::uint64_t ProgressBook::elements_committed(const PerWorkerDataset& dataset) const {
  std::uint64_t taken = 0;
  for (std::uint64_t i = 0; i < dataset.pipelines(); ++i) {
    const PipelinePosition position = pipelines_[dataset.first_pipeline() + i].position();
    taken += position.next;
    for (const auto& open : position.open) taken -= open.count;
  }
  return taken;
}

std::uint64_t ProgressBook::source_of(const PerWorkerDataset& dataset, std::size_t lane) const {
  const std::uint64_t own = dataset.pipeline(lane), first = dataset.first_pipeline();
  for (std::uint64_t i = 0; i < dataset.pipelines(); ++i) {
    const std::uint64_t pipeline = first + (own - first + i) % dataset.pipelines();
    if (!pipelines_[pipeline].ended()) return pipeline;
  }
  return own;
}

void ProgressBook::take_elements(Closure& closure, std::size_t lane) {
  const auto& counts = closure.function->elements;
  closure.takes.resize(closure.datasets.size());
  for (std::size_t i = 0; i < closure.datasets.size(); ++i) {
    if (closure.takes[i].count > 0) continue;
    const std::uint64_t pipeline = source_of(*closure.datasets[i], lane);
    closure.takes[i] = pipelines_[pipeline].take(pipeline, static_cast<std::uint32_t>(counts[i]));
  }
}

void ProgressBook::data_ended(Closure& closure, std::uint64_t pipeline) {
  for (TakeRecord& take : closure.takes) {
    if (take.pipeline != pipeline || take.count == 0) continue;
    pipelines_[pipeline].end(take);
    take.count = 0;
  }
}

const PerWorkerDataset* ProgressBook::out_of_data(const Closure& closure) const {
  for (std::size_t i = 0; i < closure.datasets.size(); ++i) {
    if (i < closure.takes.size() && closure.takes[i].count > 0) continue;
    const PerWorkerDataset& dataset = *closure.datasets[i];
    if (pipelines_[source_of(dataset, 0)].ended()) return &dataset;
  }
  return nullptr;
}

bool ProgressBook::any_open(const PerWorkerDataset& dataset) const {
  for (std::uint64_t i = 0; i < dataset.pipelines(); ++i)
    if (pipelines_[dataset.first_pipeline() + i].any_open()) return true;
  return false;
}

void ProgressBook::spend_elements(const Closure& closure) {
  for (const TakeRecord& take : closure.takes) pipelines_[take.pipeline].commit(take, 0, {});
}

// Answers come in any order, so that a lower count than is known may still arrive: only a higher
// one is news.
std::uint64_t ProgressBook::count_skipped(std::uint64_t pipeline, std::uint64_t skipped) {
  if (skipped <= skipped_[pipeline]) return 0;
  return skipped - std::exchange(skipped_[pipeline], skipped);
}

std::string ProgressBook::pipeline_name(std::uint64_t pipeline) const {
  return pipeline < pipelines_.size() ? pipelines_[pipeline].name() : std::to_string(pipeline);
}

std::vector<PipelinePosition> ProgressBook::positions() const {
  std::vector<PipelinePosition> all;
  for (std::size_t i = handed_over_; i < pipelines_.size(); ++i)
    all.push_back(pipelines_[i].position());
  return all;
}

void ProgressBook::verify(const std::vector<PipelinePosition>& positions) const {
  std::set<std::string> seen;
  for (const auto& dataset : datasets_)
    if (seen.insert(dataset->name()).second)
      verify_one(dataset->name(), dataset->pipelines(),
                 dataset->description(dataset->first_pipeline()), positions);
}

void ProgressBook::resume(std::int64_t global_step, std::vector<Pipeline> pipelines,
                          std::vector<std::shared_ptr<const PerWorkerDataset>> datasets) {
  global_step_ = next_step_ = saved_at_step_ = global_step;
  pipelines_ = std::move(pipelines);
  skipped_.resize(pipelines_.size());
  datasets_ = std::move(datasets);
  for (const auto& dataset : datasets_) looked_up_.insert(dataset->name());
}

void ProgressBook::take_again(const Closure& closure) {
  if (closure.global_step >= 0)
    next_step_ = std::max(next_step_, closure.global_step + closure.function->steps);
  for (const TakeRecord& take : closure.takes)
    if (take.count > 0 && !pipelines_.at(take.pipeline).take_again(take))
      throw DataLossError(str("closure ", closure.sequence, " of the journal takes elements of ",
                              pipelines_[take.pipeline].name(), " that another one has"));
}

// If several datasets have one name, the last one counts: the earlier coordinator made it again.
void ProgressBook::hand_over(const std::vector<PipelinePosition>& restored) {
  std::map<std::string, const PerWorkerDataset*> newest;
  for (const auto& dataset : datasets_) newest[dataset->name()] = dataset.get();
  restored_.clear();
  for (const auto& [name, dataset] : newest)
    for (std::size_t i = 0; i < dataset->pipelines(); ++i)
      restored_.push_back(pipelines_[dataset->first_pipeline() + i].position());
  for (const PipelinePosition& position : restored)
    if (!newest.contains(position.name.substr(0, position.name.rfind('/'))))
      restored_.push_back(position);
  looked_up_.clear();
  datasets_.clear();
  handed_over_ = pipelines_.size();
}

void ProgressBook::restore(std::int64_t global_step, std::vector<PipelinePosition> positions) {
  // Steps that were given out and never committed are given out again, as their closures are gone.
  global_step_ = next_step_ = saved_at_step_ = global_step;
  restored_ = std::move(positions);
  looked_up_.clear();
  restore_positions();
}

void ProgressBook::restore_positions() {
  if (restored_.empty()) return;
  for (const auto& dataset : datasets_) {
    // Once for each dataset: it may have moved on since, and must not be put back when another one
    // is added.
    if (!looked_up_.insert(dataset->name()).second) continue;
    const auto mine = positions_of(restored_, dataset->name());
    if (mine.size() == dataset->pipelines())
      for (std::size_t i = 0; i < mine.size(); ++i)
        pipelines_[dataset->first_pipeline() + i] = Pipeline(*mine[i]);
    else if (!mine.empty())
      log_warning("dataset ", dataset->name(), " begins anew: it was saved in ", mine.size(),
                  " pipelines and is now dealt out to ", dataset->pipelines());
  }
}

}  // namespace cairn
