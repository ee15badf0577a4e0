#include "coordinator/data_positions.h"

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

void DataPositions::restore(std::vector<PipelinePosition> positions) {
  restored_ = std::move(positions);
  for (const Entry& entry : *entries_)
    if (entry.cursor != nullptr) place(entry);
}

// A position belongs to the pipeline of its name, and means something only where the data is dealt
// out to as many pipelines as when it was saved.
void DataPositions::place(const Entry& entry) const {
  const std::string name = str(entry.dataset, "/", entry.pipeline.input_pipeline_id);
  std::int64_t saved = 0;
  const PipelinePosition* own = nullptr;
  for (const PipelinePosition& position : restored_) {
    saved += position.name.substr(0, position.name.rfind('/')) == entry.dataset ? 1 : 0;
    if (position.name == name) own = &position;
  }
  if (saved == 0) return;
  if (saved != entry.pipeline.num_input_pipelines) {
    log_warning("dataset ", entry.dataset, " begins anew: it was saved in ", saved,
                " pipelines and is now dealt out to ", entry.pipeline.num_input_pipelines);
    return;
  }
  if (own == nullptr) return;
  try {
    entry.cursor->go_to(*own);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str(
        "dataset \"", entry.dataset, "\" is not the one that the checkpoint has a position in: ",
        error.what(), "; restore with RestoreOptions::new_data to begin at its start"));
  }
}

}  // namespace cairn
