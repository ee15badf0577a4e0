#include "strategy/base/data_positions.h"

#include "core/base/log.h"

namespace cairn {

std::shared_ptr<const IteratorSource> DataPositions::add(
    std::shared_ptr<const IteratorSource> source, DataCursor& cursor,
    const InputContext& pipeline) {
  const std::size_t number = entries_->size();
  const Entry entry{str("iterated ", number), pipeline, &cursor, {}};
  place(entry);
  entries_->push_back(entry);
  const IteratorSource* const plain = source.get();
  return {plain, [entries = entries_, number, held = std::move(source)](auto*) mutable {
            Entry& own = (*entries)[number];
            own.last = own.cursor->position();
            own.cursor = nullptr;
            held.reset();
          }};
}

std::vector<PipelinePosition> DataPositions::positions() const {
  std::vector<PipelinePosition> all;
  for (const Entry& entry : *entries_) {
    all.push_back(entry.cursor != nullptr ? entry.cursor->position() : entry.last);
    all.back().name = str(entry.dataset, "/", entry.pipeline.input_pipeline_id);
  }
  return all;
}

// A position belongs to the pipeline of its name, and means something only where the data is dealt
// out to as many pipelines as when it was saved.
const PipelinePosition* DataPositions::find(const Entry& entry,
                                            const std::vector<PipelinePosition>& positions) {
  const auto saved = positions_of(positions, entry.dataset);
  if (static_cast<std::int64_t>(saved.size()) != entry.pipeline.num_input_pipelines) return nullptr;
  const std::string name = str(entry.dataset, "/", entry.pipeline.input_pipeline_id);
  for (const PipelinePosition* position : saved)
    if (position->name == name) return position;
  return nullptr;
}

void DataPositions::verify(const std::vector<PipelinePosition>& positions) const {
  for (const Entry& entry : *entries_) {
    if (entry.cursor == nullptr) continue;
    const PipelinePosition* const own = find(entry, positions);
    if (own != nullptr && !is_position_in(entry.cursor->dataset(), *own))
      throw other_dataset(entry.dataset);
  }
}

void DataPositions::restore(std::vector<PipelinePosition> positions) {
  restored_ = std::move(positions);
  for (const Entry& entry : *entries_)
    if (entry.cursor != nullptr) place(entry);
}

void DataPositions::place(const Entry& entry) const {
  const PipelinePosition* const own = find(entry, restored_);
  if (own == nullptr) {
    if (const std::size_t saved = positions_of(restored_, entry.dataset).size(); saved > 0)
      log_warning("dataset ", entry.dataset, " begins anew: it was saved in ", saved,
                  " pipelines and is now dealt out to ", entry.pipeline.num_input_pipelines);
    return;
  }
  if (!is_position_in(entry.cursor->dataset(), *own)) throw other_dataset(entry.dataset);
  try {
    entry.cursor->go_to(*own);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(
        str("dataset \"", entry.dataset,
            "\" does not reach the position that the checkpoint has in it: ", error.what(),
            "; restore with RestoreOptions::new_data to begin at its start"));
  }
}

}  // namespace cairn
